// What the page of a lab does about its end.
//
// - It warns before, also who looks elsewhere: in the title of the page from ten minutes before, and where the browser was
//   allowed to, by a notification five minutes before. The page itself has a sentence; live.js counts.
// - The form for the next lab, which was sent while there was a lab, is asked for again: it offers what was saved.
"use strict";

(() => {
  const TITLE_S = 600;
  const NOTE_S = 300;
  const title = document.title;
  const tell = document.getElementById("lab-tell");

  const note = (until) => {
    const key = `ending ${location.pathname} ${until}`;
    if (Notification.permission !== "granted" || sessionStorage.getItem(key)) return;
    sessionStorage.setItem(key, "told");
    new Notification("Your lab ends soon", { body: "Extend it, or download what you need.", tag: key });
  };

  const look = () => {
    const time = document.querySelector("#lab-time time[data-until]");
    const left = time?.secondsLeft ?? NaN;
    const ends = left > 0 && left <= TITLE_S;
    const words = ends ? `(${Math.ceil(left / 60)} min left) ${title}` : title;
    if (document.title !== words) document.title = words;
    if (!("Notification" in globalThis)) return;
    if (ends && left <= NOTE_S) note(time.dataset.until);
    tell.hidden = !time || Notification.permission !== "default";
  };

  tell.querySelector("button").addEventListener("click", async () => {
    await Notification.requestPermission();
    look();
  });
  setInterval(look, 1000);
  document.addEventListener("live:changed", look);
  look();
})();

(() => {
  const there = () => document.getElementById("lab-state")?.dataset.lab === "there";
  let was = there();
  let touched = false; // a form in which somebody has begun is left as it is

  const renew = async () => {
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const [old, next] = [document, page].map((each) => each.getElementById("lab-start"));
    if (old && next && !touched && !old.matches(":focus-within")) old.replaceWith(next);
  };

  for (const kind of ["input", "submit"]) {
    document.addEventListener(kind, ({ target }) => { if (target.closest("#lab-start")) touched = true; });
  }
  document.addEventListener("live:changed", () => {
    const is = there();
    if (is) touched = false;
    else if (was && document.getElementById("lab-start")) renew();
    was = is;
  });
})();
