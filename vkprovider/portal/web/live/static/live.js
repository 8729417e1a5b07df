// Pages that change by themselves: <main data-topic="lab:alice" data-version="aGk…">, and the time that is left.
//
// All tabs of a browser share one stream, for a browser opens six connections to a host at most. The tab that has the lock
// holds the stream and passes on what it brings; when that tab goes, the next one takes over. Each tab knows the version of
// its topic that it shows, and asks for all of it when a change does not fit.
"use strict";

(() => {
  let aheadMs = 0; // of this clock, the API server's is
  let ageS = 0; // of what is shown, if the API server is silent

  /** @param {number} seconds @returns {string} as live/timeleft.py says it */
  const timeLeft = (seconds) => {
    const minutes = Math.floor(seconds / 60);
    if (seconds <= 0) return "over";
    if (minutes < 10) return `${minutes}:${String(Math.floor(seconds % 60)).padStart(2, "0")} min left`;
    if (minutes < 60) return `${minutes} min left`;
    const hours = Math.floor(minutes / 60);
    return hours < 48 ? `${hours} h ${minutes % 60} min left` : `${Math.floor(hours / 24)} d ${hours % 24} h left`;
  };

  /** @param {Date} at @returns {string} as a clock in the visitor's zone shows it, with the date unless it is today */
  const clock = (at) => {
    if (Number.isNaN(at.getTime())) return "";
    const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    return at.toDateString() === new Date().toDateString() ? time : `${at.toLocaleDateString()} ${time}`;
  };

  const tick = () => {
    for (const time of document.querySelectorAll("time[data-until]")) {
      const until = Date.parse(time.getAttribute("data-until") ?? "");
      const seconds = (until - Date.now() - aheadMs) / 1000;
      const words = Number.isNaN(until) ? time.textContent : timeLeft(seconds);
      if (time.textContent !== words) time.textContent = words;
      /** @type {any} */ (time).secondsLeft = seconds; // for other scripts; an attribute would be no part of the page
    }
    for (const time of document.querySelectorAll("time[data-clock]")) {
      const words = clock(new Date(time.getAttribute("datetime") ?? ""));
      if (words && time.textContent !== words) time.textContent = words;
    }
  };
  setInterval(tick, 1000);
  document.addEventListener("live:changed", tick);
  tick();

  const path = document.currentScript?.dataset.live ?? "/live";
  const main = /** @type {HTMLElement | null} */ (document.querySelector("main[data-topic]"));
  if (!main) return;

  const LOST = "Connection lost; your lab goes on.";
  const OVER = { 401: "Your login is over: load the page again to log in.", 404: "You may not see this any more." };
  const SILENT_MS = 4500; // the portal says something every two seconds
  const ABSENT_MS = 15000; // a tab that has the stream says something every five
  const NAME = `live ${path}`;
  const banner = document.createElement("p");
  banner.className = "live-banner";
  banner.setAttribute("role", "status");
  document.body.prepend(banner);

  /** @param {string} words */
  const say = (words) => { if (banner.textContent !== words) banner.textContent = words; };

  // -------------------------------------------------------------------------------------------------- every tab

  const topic = main.dataset.topic ?? "";
  let version = main.dataset.version ?? "";
  let over = false; // nothing more comes
  let heardAt = Date.now(); // from the portal
  let ledAt = Date.now(); // from the tab that has the stream
  const tabs = new BroadcastChannel(NAME);
  /** @typedef {{topic: string, version: string}} Wish */
  /** @type {{wish: (wish: Wish) => void, check: () => void, hurry: () => void} | null} what the tab with the stream does */
  let leader = null;

  const wish = () => (leader ? leader.wish({ topic, version }) : tabs.postMessage({ wish: { topic, version } }));

  /** @param {string} kind @param {any} data */
  const hear = (kind, data) => {
    ledAt = Date.now();
    if (kind === "lost" && !over) say(LOST);
    if (kind === "over" || (kind === "gone" && data.topic === topic)) {
      over = true;
      say(data.words);
    }
    if (kind !== "beat" && kind !== "change") return;
    heardAt = Date.now();
    if (kind === "beat") {
      aheadMs = data.at - Date.now();
      ageS = data.age;
    } else if (data.topic === topic && (!data.from || data.from === version)) {
      over = false;
      version = data.version;
      globalThis.showChange(data);
    } else if (data.topic === topic && data.version !== version) {
      version = "";
      wish();
    }
    if (!over) say(ageS ? `The cluster is silent: what you see may be ${ageS} s old. Your lab goes on.` : "");
  };

  tabs.onmessage = ({ data }) => {
    if (data.kind) hear(data.kind, data.data);
    else if (data.who) wish();
    else if (data.wish) leader?.wish(data.wish);
    else leader?.hurry();
  };
  let looks = 0;

  setInterval(() => {
    if (over || Date.now() - heardAt < SILENT_MS) return;
    say(LOST);
    leader?.check();
    looks += 1;
    if (leader || document.hidden || looks % 6) return;
    tabs.postMessage({ hurry: true }); // the timers of a hidden tab are slow
    if (Date.now() - ledAt > ABSENT_MS && navigator.locks) {
      ledAt = Date.now();
      lead({ steal: true });
    }
  }, 500);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) wish(); });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  // -------------------------------------------------------------------------------------------------- the tab with the stream

  /** Hold the stream of this browser until all is over, or another tab has taken it. */
  const follow = async () => {
    /** @type {Map<string, string>} by topic, the version that all tabs show; "" if that is not one */
    let shown = new Map();
    let stop = new AbortController();
    let isNew = true; // whether to forget what closed tabs have shown
    let openedAt = 0;
    let failures = 0;
    let wake = () => {};
    const wait = (/** @type {number} */ ms) => new Promise((done) => { wake = () => done(null); setTimeout(wake, ms); });
    const tell = (/** @type {string} */ kind, /** @type {any} */ data) => {
      tabs.postMessage({ kind, data });
      hear(kind, data);
    };

    const isSilent = () => Date.now() - Math.max(openedAt, heardAt) > SILENT_MS;
    const mine = leader = {
      wish: (/** @type {Wish} */ asked) => {
        const known = shown.get(asked.topic);
        if (known === asked.version && known !== undefined) return;
        shown.set(asked.topic, known === undefined ? asked.version : "");
        stop.abort();
      },
      check: () => { if (openedAt && isSilent()) stop.abort(); },
      hurry: () => (openedAt ? leader?.check() : wake()),
    };

    /** Read a stream to its end. @returns {Promise<number>} the status that says that all is over; else 0 */
    const read = async () => {
      const query = new URLSearchParams();
      for (const [each, its] of [...shown].slice(-20)) { query.append("topic", each); query.append("version", its); }
      const answer = await fetch(`${path}?${query}`, { headers: { Accept: "text/event-stream" }, signal: stop.signal });
      if (answer.status in OVER) return answer.status;
      if (!answer.ok || !answer.body) throw new Error(`${answer.status}`);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { done, value } = await reader.read();
        if (done || leader !== mine) return 0;
        const blocks = (text + value).split("\n\n");
        text = blocks.pop() ?? "";
        for (const block of blocks) {
          const [, kind, line] = /^event: (.*)\ndata: (.*)$/m.exec(block) ?? [];
          const data = line && JSON.parse(line);
          if (kind === "change") shown.set(data.topic, data.version);
          if (kind === "gone") shown.delete(data.topic);
          if (kind) tell(kind, data);
        }
      }
    };

    while (leader === mine) {
      if (isNew) {
        shown = new Map(over ? [] : [[topic, version]]);
        tabs.postMessage({ who: true });
      }
      await wait(50); // for the wishes of others
      if (!shown.size) return; // nobody may see anything
      stop = new AbortController();
      openedAt = Date.now();
      const status = await read().catch(() => 0);
      isNew = !stop.signal.aborted || isSilent();
      failures = heardAt >= openedAt ? 0 : failures + 1;
      openedAt = 0;
      if (status) return tell("over", { words: OVER[status] });
      if (!isNew) continue;
      if (failures) tell("lost", {});
      await wait(Math.min(5000, 500 * 2 ** failures) * (0.5 + Math.random() / 2));
    }
  };

  /** Take the stream as soon as no other tab has it. @param {LockOptions} options */
  const lead = (options) => {
    const done = navigator.locks ? navigator.locks.request(NAME, options, follow) : follow();
    done.then(() => { leader = null; }, (error) => {
      leader = null;
      if (error.name === "AbortError") lead({}); // another tab has taken it
    });
  };
  lead({});
  wish();
})();
