// What the pages do beside what they do without scripts:
//
// - <form data-in-place> is sent without leaving the page. A refusal appears as a sentence beneath the form; otherwise
//   the page that the answer leads to is loaded, unless it is this one and follows changes by itself (<main data-topic>).
// - A form that came without its token, since many see the same piece, is given the one of the page.
// - Who logs out, by <form data-leaves>, in one tab is logged out in all: consoles and screens close (followLogin), and
//   each page is loaded again, which ends its stream.
// - What leaves the page is sent once, however often its button is pressed; <form data-stays> gets a file instead.
// - <form data-send-now> is sent as soon as the page is there.
// - What came of a button is said where it was pressed: in the nearest [data-answers], else beneath its form. Where it
//   worked, and the page stays, that is the button's data-done.
// - A question has the focus when it is opened; Cancel and Escape close it.
"use strict";

(() => {
  const token = () => document.querySelector('meta[name="csrf"]')?.content ?? "";

  document.documentElement.classList.add("scripted");

  const say = (place, html) => {
    place.querySelector(":scope > .answer")?.remove();
    if (!html) return;
    const answer = document.createElement("div");
    answer.className = "answer";
    answer.innerHTML = html;
    place.append(answer);
  };

  const words = (text, kind = "refusal", role = "alert") => {
    const paragraph = document.createElement("p");
    paragraph.className = kind;
    paragraph.setAttribute("role", role);
    paragraph.textContent = text;
    return paragraph.outerHTML;
  };

  const leaving = document.querySelector("form[data-leaves]");
  const tabs = leaving && new BroadcastChannel(`left ${leaving.action}`);
  const CLOSING_MS = 200; // consoles come first: of one in which somebody typed, the browser asks whether to leave it
  if (tabs && window === window.top) tabs.onmessage = () => setTimeout(() => location.reload(), CLOSING_MS);

  const sending = new WeakSet();
  const LEAVING_MS = 60_000;

  const send = async (form, button) => {
    if (sending.has(form)) return;
    sending.add(form);
    const data = new FormData(form, button);
    const place = button?.closest("[data-answers]") ?? form;
    button?.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(button?.hasAttribute("formaction") ? button.formAction : form.action, {
        method: "POST",
        body: form.enctype === "multipart/form-data" ? data : new URLSearchParams(data),
        headers: { "X-Piece": "1" },
      });
      const there = answer.headers.get("X-Location");
      if (answer.ok && form === leaving) tabs.postMessage("");
      if (!answer.ok) {
        const text = await answer.text();
        say(place, text.startsWith('<p class="refusal"') ? text : words(`The portal did not answer (${answer.status}); try again.`));
      } else if (!there) {
        location.reload();
      } else if (document.querySelector("main[data-topic]") && new URL(there, location).pathname === location.pathname) {
        say(place, button?.dataset.done ? words(button.dataset.done, "done", "status") : "");
        (button ?? form).closest("details.confirm")?.removeAttribute("open");
      } else {
        location.assign(there);
      }
    } catch {
      say(place, words("The portal did not answer. Nothing may have happened; try again."));
    } finally {
      sending.delete(form);
      button?.removeAttribute("aria-busy");
    }
  };

  /** @param {HTMLFormElement} form @param {HTMLElement | null} button that was pressed */
  const leave = (form, button) => {
    const again = () => {
      clearTimeout(timer);
      sending.delete(form);
      button?.removeAttribute("aria-busy");
    };
    sending.add(form);
    button?.setAttribute("aria-busy", "true");
    const timer = setTimeout(again, LEAVING_MS); // somebody stopped the browser
    addEventListener("pageshow", ({ persisted }) => { if (persisted) again(); }); // somebody came back to it
  };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    const field = form.querySelector('input[name="csrf"]');
    if (field && !field.value) field.value = token();
    if (event.defaultPrevented) return;
    if (form.hasAttribute("data-in-place")) {
      event.preventDefault();
      send(form, event.submitter);
    } else if (form.method === "post" && !form.hasAttribute("data-stays")) {
      if (sending.has(form)) event.preventDefault();
      else leave(form, event.submitter);
    }
  });

  const cancel = (question) => {
    question.removeAttribute("open");
    question.querySelector("summary").focus();
  };

  document.addEventListener("keydown", (event) => {
    const at = document.activeElement;
    const anywhere = at === document.body || !at ? document.querySelector("details.confirm[open]") : null;
    const open = event.key === "Escape" && (at?.closest("details.confirm[open]") ?? anywhere);
    if (open) cancel(open);
  });

  document.addEventListener("click", (event) => {
    const question = event.target.closest?.("[data-cancel]")?.closest("details.confirm");
    if (question) cancel(question);
  });

  document.addEventListener("toggle", ({ target }) => {
    if (target.open && target.matches("details.confirm")) target.querySelector("[data-cancel]")?.focus();
  }, true);

  document.querySelector("form[data-send-now]")?.requestSubmit();
})();
