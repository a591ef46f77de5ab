// Client of the server: requests with JSON bodies, and a websocket of events that reconnects by itself.

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 8000;

/** A request that the server refused, with one sentence for people. */
export class Refused extends Error {}

async function call(method, path, body, files = []) {
  const json = body && JSON.stringify(body);
  const init = files.length
    ? { method, body: multipart(json, files) }
    : { method, headers: body ? { "Content-Type": "application/json" } : {}, body: json };
  const response = await fetch(`/page${path}`, init).catch(() => {
    throw new Refused("The playground does not answer. Is it still running?");
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(answer.error ?? `The playground answered ${response.status}.`);
  return answer;
}

function multipart(json, files) {
  const form = new FormData();
  form.append("payload_json", json);
  files.forEach((file, index) => form.append(`files[${index}]`, file));
  return form;
}

const at = (channelId, rest) => `/channels/${channelId}/${rest}`;
const as = (authorId) => `?author_id=${encodeURIComponent(authorId)}`;
const reaction = (message, emoji, authorId) =>
  at(message.channel_id, `messages/${message.id}/reactions/${encodeURIComponent(emoji)}${as(authorId)}`);

export const post = (channelId, body, files) => call("POST", at(channelId, "messages"), body, files);
export const edit = (message, authorId, content) =>
  call("PATCH", at(message.channel_id, `messages/${message.id}`), { author_id: authorId, content });
export const remove = (message, authorId) =>
  call("DELETE", at(message.channel_id, `messages/${message.id}${as(authorId)}`));
export const typing = (channelId, authorId) => call("POST", at(channelId, "typing"), { author_id: authorId });
export const react = (message, emoji, authorId) => call("PUT", reaction(message, emoji, authorId));
export const unreact = (message, emoji, authorId) => call("DELETE", reaction(message, emoji, authorId));
export const runCommand = (channelId, body) => call("POST", at(channelId, "commands"), body);
export const autocomplete = (channelId, body) => call("POST", at(channelId, "autocomplete"), body);
export const useComponent = (channelId, body) => call("POST", at(channelId, "components"), body);
export const submitForm = (channelId, body) => call("POST", at(channelId, "forms"), body);
export const playScene = (channelId, title) => call("PUT", at(channelId, "scene"), { title });
export const stopScene = (channelId) => call("DELETE", at(channelId, "scene"));
export const openThread = (channelId, body) => call("POST", at(channelId, "threads"), body);
export const changeThread = (channelId, body) => call("PATCH", `/channels/${channelId}`, body);
export const removeChannel = (channelId, authorId) => call("DELETE", `/channels/${channelId}${as(authorId)}`);
export const joinThread = (channelId, userId, authorId) =>
  call("PUT", at(channelId, `members/${userId}`), { author_id: authorId });
export const leaveThread = (channelId, userId, authorId) =>
  call("DELETE", at(channelId, `members/${userId}${as(authorId)}`));
export const addBot = (body) => call("POST", "/bots", body);
export const removeBot = () => call("DELETE", "/bot");
export const inviteBot = () => call("PUT", "/bot");

/** Read events for ever. `onFrame(frame)` is called for each, `onOnline(bool)` when the connection opens or closes. */
export function listen(onFrame, onOnline) {
  let delay = FIRST_DELAY_MS;
  const open = () => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/page/events`);
    socket.addEventListener("message", (event) => {
      delay = FIRST_DELAY_MS;
      onFrame(JSON.parse(event.data));
    });
    socket.addEventListener("open", () => onOnline(true));
    socket.addEventListener("close", () => {
      onOnline(false);
      setTimeout(open, delay);
      delay = Math.min(delay * 2, LONGEST_DELAY_MS);
    });
  };
  open();
}
