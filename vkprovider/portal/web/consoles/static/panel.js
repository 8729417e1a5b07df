// Opens consoles of devices in the page of their lab, as tabs or side by side. Without this script the links lead to pages
// of their own.
//
// The address says which are open, so that they are there again after a reload, and Back closes what was opened last:
// `#r1,r2` are two tabs, of which the first is in front; `#r1+r2` are both side by side.
"use strict";

(() => {
  const panel = document.getElementById("console-panel");
  const tabs = document.getElementById("console-tabs");
  const frames = document.getElementById("console-frames");
  const side = document.getElementById("console-side");
  /** @type {Map<string, HTMLIFrameElement>} by the label of the device */
  const open = new Map();
  let opener = null;

  /** @returns {Map<string, string>} by the label of each device with a console, the address of that, as on the page */
  const consoles = () => {
    const found = new Map();
    for (const link of document.querySelectorAll("a[data-console]")) {
      const href = link.href instanceof SVGAnimatedString ? link.href.baseVal : link.getAttribute("href");
      if (link.dataset.console && !found.has(link.dataset.console)) found.set(link.dataset.console, href);
    }
    return found;
  };

  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return "";
    }
  };

  /** @returns {{labels: string[], beside: boolean}} what the address names; the first is in front */
  const wanted = () => {
    const text = location.hash.slice(1);
    const labels = [...new Set(text.split(/[,+]/).map(decoded).filter(Boolean))];
    const known = consoles();
    if (document.getElementById(decoded(text)) && !known.has(decoded(text))) return null; // a part of the page
    return { labels, beside: text.includes("+") };
  };

  const go = (labels, beside) => {
    const there = labels.map(encodeURIComponent).join(beside ? "+" : ",");
    if (location.hash.slice(1) === there) return show();
    history.pushState(null, "", there ? `#${there}` : location.pathname + location.search);
    show();
  };

  const button = (words, label, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "quiet";
    made.textContent = words;
    if (label) made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
    return made;
  };

  const close = (label) => {
    const { labels, beside } = wanted() ?? { labels: [...open.keys()], beside: false };
    const rest = labels.filter((each) => each !== label);
    go(rest, beside && rest.length > 1);
    if (!rest.length) (opener?.isConnected ? opener : document.getElementById("main")).focus();
  };

  const tab = (label, front, rest) => {
    const item = document.createElement("li");
    const pick = button(label, "", () => {
      go([label, ...rest], false);
      open.get(label)?.focus();
    });
    pick.setAttribute("aria-pressed", String(front));
    item.append(pick, button("×", `Close ${label}`, () => close(label)));
    return item;
  };

  /** Show what the address names, as far as the page has it. */
  const show = () => {
    const asked = wanted();
    if (!asked) return;
    const known = consoles();
    const labels = asked.labels.filter((label) => known.has(label) || open.has(label));
    const beside = asked.beside && labels.length > 1;
    for (const [label, frame] of open) {
      if (labels.includes(label)) continue;
      frame.remove();
      open.delete(label);
    }
    for (const label of labels) {
      if (open.has(label)) continue;
      const url = new URL(known.get(label), location.href);
      url.searchParams.set("panel", "");
      const frame = document.createElement("iframe");
      frame.title = `Console of ${label}`;
      frame.src = url;
      open.set(label, frame);
      frames.append(frame);
    }
    for (const [label, frame] of open) frame.hidden = !beside && label !== labels[0];
    const order = [...known.keys()].filter((label) => open.has(label));
    for (const label of labels) if (!order.includes(label)) order.push(label);
    tabs.replaceChildren(
      ...order.map((label) => tab(label, beside || label === labels[0], labels.filter((each) => each !== label))),
    );
    side.hidden = labels.length < 2;
    side.setAttribute("aria-pressed", String(beside));
    panel.hidden = !labels.length;
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-console]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    opener = link;
    const label = link.dataset.console;
    const { labels, beside } = wanted() ?? { labels: [], beside: false };
    go([label, ...labels.filter((each) => each !== label)], beside);
    panel.scrollIntoView({ block: "nearest" });
    open.get(label)?.focus();
  });

  side.addEventListener("click", () => {
    const asked = wanted();
    if (asked) go(asked.labels, !asked.beside);
  });
  document.getElementById("console-close").addEventListener("click", () => {
    go([], false);
    (opener?.isConnected ? opener : document.getElementById("main")).focus();
  });

  // A lab that has ended has no consoles any more; devices that are not there yet get theirs when they are.
  document.addEventListener("live:changed", () => {
    const state = document.getElementById("lab-state")?.dataset.lab;
    if (open.size && state && state !== "there") go([], false);
    else if (wanted()?.labels.some((label) => !open.has(label))) show();
  });
  addEventListener("popstate", show);
  addEventListener("hashchange", show);
  show();
})();
