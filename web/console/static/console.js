// A live page: its event stream sends HTML by element id. It disconnects while the page is hidden.
const live = document.querySelector("[data-live]");
const RETRY_MS = 5_000;
let source = null;
let retry = 0;

/** Puts HTML, which the server has escaped, into an element. What is unfolded or focused in it stays so. */
const fill = (id, html) => {
  const element = document.getElementById(id);
  if (!element) return;
  const unfolded = [...element.querySelectorAll("details[open]")].map((details) => details.id);
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const place = focused && (focused.id || focused.closest("details")?.id);
  element.innerHTML = html;
  for (const one of unfolded) document.getElementById(one)?.setAttribute("open", "");
  if (place) {
    const again = document.getElementById(place);
    (again?.matches("details") ? again.querySelector("summary") : again)?.focus();
  }
  tellTimes(element);
};

/** Times in the visitor's own time zone. */
const tellTimes = (within) => {
  for (const time of within.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    time.textContent = at.toLocaleString();
    time.title = at.toISOString();
  }
};

const close = () => {
  clearTimeout(retry);
  source?.close();
  source = null;
};

const open = () => {
  close();
  source = new EventSource(live.dataset.live);
  source.addEventListener("message", (event) => {
    for (const [id, html] of Object.entries(JSON.parse(event.data))) fill(id, html);
  });
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS); // refused: too many, or logged out
  });
};

tellTimes(document);
if (live) {
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && open());
  if (!document.hidden) open();
}
