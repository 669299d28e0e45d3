"use strict";
// Everything here is a comfort: the pages work without it.
(() => {
  const one = (id) => document.getElementById(id);

  // A job: wait for its end, then show the page with the answer.
  const watch = one("watch");
  if (watch) {
    const source = new EventSource(watch.dataset.events);
    source.addEventListener("state", (event) => {
      const state = JSON.parse(event.data).state;
      one("state").textContent = state.charAt(0).toUpperCase() + state.slice(1);
    });
    source.addEventListener("done", () => { source.close(); location.reload(); });
    source.addEventListener("error", () => { source.close(); setTimeout(() => location.reload(), 3000); });
  }

  const form = one("ask");
  if (!form) return;

  // The price: a slider beside the field, on a logarithmic scale, and what would be left.
  const field = one("epsilon"), slider = one("slider"), price = one("price").dataset;
  const least = Number(price.least), most = Number(price.most);
  const scale = Math.log(most / least) || 1;
  const tell = () => {
    const epsilon = Number(field.value);
    if (!(epsilon > 0)) { one("rest").textContent = ""; return; }
    slider.value = Math.round((100 * Math.log(epsilon / least)) / scale);
    slider.setAttribute("aria-valuetext", "epsilon " + field.value);
    const words = [];
    for (const [name, left] of [["of the data set", price.leftDataset], ["of your own budget", price.leftOwn]]) {
      if (left === undefined) continue;
      const rest = Number(left) - epsilon;
      words.push(rest < -1e-12 ? "more than what is left " + name : Number(Math.max(rest, 0).toPrecision(3)) + " " + name);
    }
    one("rest").textContent = words.length ? "After this: " + words.join(", ") + "." : "";
  };
  if (most > least) {
    slider.hidden = false;
    slider.addEventListener("input", () => {
      field.value = Number(Math.min(most, least * Math.exp((scale * slider.value) / 100)).toPrecision(2));
      tell();
    });
  }
  field.addEventListener("input", tell);
  tell();

  // The test that suits: asked for again when a choice changes. A late answer to an older choice is left out.
  let waiting, asked = 0;
  const advise = () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const sent = new URLSearchParams(new FormData(form));
      sent.delete("csrf");
      const mine = ++asked;
      const answer = await fetch(form.dataset.advice + "?" + sent, { redirect: "error" }).catch(() => null);
      const text = answer && answer.ok ? await answer.text() : null;
      if (text !== null && mine === asked) one("advice").innerHTML = text;
    }, 250);
  };
  form.addEventListener("change", advise);
})();
