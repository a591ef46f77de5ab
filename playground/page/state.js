// The page's state: the world as the server sends it, and the user's choices.
// Frames and choices change it only here; the parts that show it subscribe.

const TYPING_MS = 10_000; // Discord: a typing notice lasts ten seconds
const MESSAGES_KEPT = 500; // per channel, oldest dropped
const EPHEMERALS_KEPT = 50;
const VIEW_CHANNEL = 1n << 10n; // permission
const MANAGE_GUILD = 1n << 5n; // permission
const SUGGESTIONS_KEPT = 20;
const NONE = []; // one value, so that messages without reactions compare equal

const CHOICES = { channelId: null, speakerId: null, showDecisions: true };

export class Store {
  constructor(clock = Date.now, storage = localStorage) {
    this.clock = clock;
    this.storage = storage;
    this.listeners = [];
    this.online = true;
    this.guild = null; // until the first frame
    this.ephemerals = [];
    this.failed = new Map(); // message id -> who used a component of it without a response
    this.suggestions = new Map(); // interaction id -> the bot's suggestions for an option, the last few
    this.form = null; // frame of the form that the bot shows to the speaker
    this.unread = new Set();
    this.replyTo = null;
    this.ping = true;
    this.editingId = null;
    Object.assign(this, CHOICES, JSON.parse(storage.getItem("parley") ?? "{}"));
  }

  subscribe(listener) {
    this.listeners.push(listener);
  }

  changed() {
    for (const listener of this.listeners) listener();
  }

  /** Handle one frame from the server. Unknown types are ignored. */
  apply(frame) {
    FRAMES[frame.type]?.(this, frame);
    this.changed();
  }

  /** Set choices of the user, such as `{editingId}` or `{online}`. */
  choose(choices) {
    Object.assign(this, choices);
    const kept = Object.keys(CHOICES).map((name) => [name, this[name]]);
    this.storage.setItem("parley", JSON.stringify(Object.fromEntries(kept)));
    this.changed();
  }

  /** In direct messages only their own person can be the speaker. */
  openChannel(channelId) {
    this.unread.delete(channelId);
    this.wantedId = null;
    const { recipient_id: speakerId = this.speakerId } = this.channels.find((channel) => channel.id === channelId) ?? {};
    this.choose({ channelId, speakerId, replyTo: null, editingId: null });
  }

  /** Open a channel, now or as soon as the server has sent it. */
  openWhenKnown(channelId) {
    if (this.channels.some((channel) => channel.id === channelId)) this.openChannel(channelId);
    else this.wantedId = channelId;
  }

  speakAs(speakerId) {
    this.choose({ speakerId, editingId: null });
    if (this.channel.recipient_id) this.openChannel(this.directMessages().id);
    else if (this.channel.parent_id && !this.sees(this.channel)) this.openChannel(this.channel.parent_id);
  }

  /** The speaker's direct messages with the bot; another bot has none. */
  directMessages() {
    return this.channels.find((channel) => channel.recipient_id === this.speakerId);
  }

  /** The threads of a channel that the speaker can see, the newest first. */
  threadsOf(channelId) {
    return this.channels.filter((channel) => channel.parent_id === channelId && this.sees(channel)).reverse();
  }

  sees(channel) {
    return Boolean(BigInt(channel.permissions[this.speakerId] ?? 0) & VIEW_CHANNEL);
  }

  /** A person's rank in the guild, such as "Owner" or "Helpers": their roles, and whether they manage it. */
  standing({ id, roles = [] }) {
    const names = this.guild.roles.filter((role) => roles.includes(role.id)).map((role) => role.name);
    const permissions = BigInt(this.channels[0]?.permissions[id] ?? 0);
    if (id === this.guild.owner_id) names.unshift("Owner");
    else if (permissions & MANAGE_GUILD && !names.length) names.push("Manages the server");
    return names.join(", ");
  }

  startReply(message) {
    this.choose({ replyTo: message, ping: true, editingId: null });
  }

  dismiss(messageId) {
    this.ephemerals = this.ephemerals.filter((item) => item.message.id !== messageId);
    this.changed();
  }

  /** Forget that a component of the message was used without a response. */
  retry(messageId) {
    this.failed.delete(messageId);
    this.changed();
  }

  get channel() {
    return this.channels.find((channel) => channel.id === this.channelId);
  }

  /** Messages of the open channel in order, including the speaker's ephemeral ones. */
  visibleMessages() {
    const own = this.ephemerals.filter((item) => item.user_id === this.speakerId && item.channel_id === this.channelId);
    const all = [...this.messagesIn(this.channelId).values(), ...own.map((item) => item.message)];
    return own.length ? all.sort((a, b) => compareIds(a.id, b.id)) : all;
  }

  messagesIn(channelId) {
    if (!this.messages.has(channelId)) this.messages.set(channelId, new Map());
    return this.messages.get(channelId);
  }

  /** Ids of those who type in the open channel, without the speaker. */
  whoTypes() {
    const now = this.clock();
    const typing = [...(this.typing.get(this.channelId) ?? [])];
    return typing.filter(([userId, until]) => until > now && userId !== this.speakerId).map(([userId]) => userId);
  }

  /** Name and colour of a person or bot, also of one that is not in the guild (a webhook). */
  person(id, author = null) {
    const known = this.bot.id === id ? this.bot : (this.people.get(id) ?? this.bots.get(id));
    return known ?? { id, name: author?.global_name ?? author?.username ?? "unknown", color: "#80848e" };
  }

  /** The commands of a type that the speaker may use in the open channel; Discord does not show the others. */
  commandsOf(type) {
    const own = BigInt(this.channel.permissions[this.speakerId] ?? 0);
    const direct = Boolean(this.channel.recipient_id);
    const lets = ({ needed }) => direct || !(BigInt(needed) & ~own);
    return this.commands.filter(
      (command) => command.type === type && command.contexts.includes(Number(direct)) && lets(command),
    );
  }

  everyone() {
    return [this.bot, ...this.people.values(), ...this.bots.values()];
  }

  /** [{emoji, users: ids, count}]; until the first change since the page was loaded, only the count is known. */
  reactionsTo(message) {
    return this.reactions.get(message.id) ?? message.reactions?.map(fromWire) ?? NONE;
  }

  hasFailed(messageId) {
    return this.failed.get(messageId) === this.speakerId;
  }

  isEphemeral(messageId) {
    return this.ephemerals.some((item) => item.message.id === messageId);
  }
}

const FRAMES = {
  world: applyWorld,
  message_create: (store, { message }) => {
    keep(store, message);
    store.typing.get(message.channel_id)?.delete(message.author.id);
    if (message.channel_id !== store.channelId) store.unread.add(message.channel_id);
  },
  message_update: (store, { message }) => keep(store, message),
  message_delete: forget,
  typing: (store, { channel_id, user_id }) => {
    if (!store.typing.has(channel_id)) store.typing.set(channel_id, new Map());
    store.typing.get(channel_id).set(user_id, store.clock() + TYPING_MS);
    setTimeout(() => store.changed(), TYPING_MS);
  },
  reactions: (store, { message_id, reactions }) => store.reactions.set(message_id, reactions.map(fromWire)),
  annotation: (store, { message_id, annotation }) => store.annotations.set(message_id, annotation),
  commands: (store, { commands }) => (store.commands = commands),
  thread: (store, { thread }) => {
    const index = store.channels.findIndex((channel) => channel.id === thread.id);
    if (index < 0) store.channels = [...store.channels, thread];
    else store.channels = store.channels.with(index, thread);
    if (store.wantedId === thread.id) store.openChannel(thread.id);
  },
  thread_delete: (store, { id }) => {
    const gone = store.channels.find((channel) => channel.id === id);
    store.channels = store.channels.filter((channel) => channel.id !== id);
    store.messages.delete(id);
    if (store.channelId === id) store.openChannel(gone.parent_id);
    store.unread.delete(id);
  },
  scene: (store, { channel_id, title, from }) => {
    const follow = from && store.channel?.scene === title;
    const told = (channel) => (channel.id === channel_id ? { ...channel, scene: title } : channel);
    store.channels = store.channels.map(told);
    if (follow) store.openChannel(channel_id);
  },
  bot: (store, { connected }) => (store.bot = { ...store.bot, connected }),
  ephemeral: applyEphemeral,
  suggestions: (store, { interaction_id, choices }) => {
    store.suggestions.set(interaction_id, choices);
    if (store.suggestions.size > SUGGESTIONS_KEPT) store.suggestions.delete(store.suggestions.keys().next().value);
  },
  form: (store, frame) => frame.user_id === store.speakerId && (store.form = frame),
  interaction_failed: (store, { message_id, user_id }) => store.failed.set(message_id, user_id),
};

function applyWorld(store, world) {
  store.guild = world.guild;
  store.categories = world.categories;
  store.channels = [...world.channels, ...world.threads, ...world.dms];
  store.people = new Map(world.people.map((person) => [person.id, person]));
  store.bots = new Map(world.bots.map((bot) => [bot.id, bot]));
  store.bot = { color: "#5865f2", ...world.bot };
  store.commands = world.commands;
  store.scenes = world.scenes;
  store.hasDecisions = world.decisions;
  store.annotations = new Map(Object.entries(world.annotations));
  store.reactions = new Map();
  store.typing = new Map();
  store.messages = new Map();
  for (const message of Object.values(world.messages).flat()) keep(store, message);
  dropStale(store);
}

/** Drop choices with unknown ids: after a restart of the playground all ids are new. */
function dropStale(store) {
  const known = new Set(store.channels.map((channel) => channel.id));
  const open = store.messages.get(store.channelId);
  if (!known.has(store.channelId)) store.channelId = store.channels[0]?.id ?? null;
  if (!store.people.has(store.speakerId) && !store.bots.has(store.speakerId)) store.speakerId = [...store.people.keys()][0] ?? null;
  if (!open?.has(store.replyTo?.id)) store.replyTo = null;
  if (!open?.has(store.editingId)) store.editingId = null;
  store.unread = new Set([...store.unread].filter((id) => known.has(id)));
  store.ephemerals = store.ephemerals.filter((item) => known.has(item.channel_id));
}

/** Add a new message, or update a known one. */
function keep(store, message) {
  const kept = store.messagesIn(message.channel_id);
  kept.set(message.id, message);
  store.failed.delete(message.id);
  if (kept.size > MESSAGES_KEPT) drop(store, kept, kept.keys().next().value);
}

function drop(store, kept, id) {
  kept.delete(id);
  store.reactions.delete(id);
  store.annotations.delete(id);
  store.failed.delete(id);
}

/** Remove a deleted message, also from the quotes of its replies. */
function forget(store, { channel_id, id }) {
  const kept = store.messagesIn(channel_id);
  drop(store, kept, id);
  for (const [replyId, reply] of kept) {
    if (reply.message_reference?.message_id === id) kept.set(replyId, { ...reply, referenced_message: null });
  }
  store.ephemerals = store.ephemerals.filter((item) => item.message.id !== id);
  if (store.replyTo?.id === id) store.replyTo = null;
  if (store.editingId === id) store.editingId = null;
}

function applyEphemeral(store, item) {
  store.failed.delete(item.message.id);
  const index = store.ephemerals.findIndex((other) => other.message.id === item.message.id);
  if (index >= 0) store.ephemerals[index] = item;
  else store.ephemerals.push(item);
  store.ephemerals = store.ephemerals.slice(-EPHEMERALS_KEPT);
}

/** A reaction in the form of the page's frames (`users`), or of a Discord message (`count`, with an emoji object). */
function fromWire({ emoji, users = [], count = users.length }) {
  return { emoji: emoji.name ?? emoji, users, count };
}

/** Compares snowflakes, which are too large for numbers: first by length, then as text. */
function compareIds(a, b) {
  return a.length - b.length || (a < b ? -1 : Number(a > b));
}
