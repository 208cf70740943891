"use strict";
(() => {
  const links = JSON.parse(document.getElementById("links").textContent);
  const inspector = document.getElementById("inspector");
  const hint = inspector.innerHTML;
  const svgs = [...document.querySelectorAll("svg[data-graph]")];
  const nodesOf = new Map(svgs.map((svg) => [svg, [...svg.querySelectorAll(".node")]]));
  const LIT = 50; // from this percentage of the strongest response a node lights up
  let pinned = null;

  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    if (className) made.className = className;
    return made;
  };

  const copyOf = (id, caption) => {
    const figure = element("figure");
    const owner = document.getElementById(id).ownerSVGElement;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
    svg.setAttribute("viewBox", owner.getAttribute("viewBox"));
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", caption);
    use.setAttribute("href", "#" + id);
    svg.append(use);
    figure.append(svg, element("figcaption", caption));
    return figure;
  };

  const group = (...parts) => {
    const made = element("div", "", "group");
    made.append(...parts);
    return made;
  };

  const clear = () => {
    for (const lit of document.querySelectorAll(".node.lit, .node.ego, .filter.on, .filter.match")) {
      lit.classList.remove("lit", "ego", "here", "on", "match");
    }
    for (const line of document.querySelectorAll(".edges line.ego")) line.classList.remove("ego");
    for (const svg of svgs) svg.classList.remove("pointing");
    inspector.innerHTML = hint;
  };

  const showFilter = (card) => {
    const layer = Number(card.dataset.layer), filter = Number(card.dataset.filter);
    let count = 0;
    card.classList.add("on");
    for (const svg of svgs) {
      const response = links.graphs[svg.dataset.graph].response[layer];
      nodesOf.get(svg).forEach((node, n) => {
        const value = response[n][filter];
        if (value < LIT) return;
        node.classList.add("lit");
        node.style.setProperty("--glow-by", value / 100);
        if (svg.closest(".input")) count += 1;
      });
    }
    const what = element("div", "", "what");
    const alike = Number(card.querySelector(".matches").dataset.alike);
    what.append(element("b", "Filter " + links.layers[layer][filter]), element("br"));
    what.append(card.querySelector(".name span").textContent);
    if (alike) what.append(`, as ${alike} other${alike > 1 ? "s" : ""} of this layer`);
    what.append(element("br"), `${count} node${count === 1 ? "" : "s"} respond${count === 1 ? "s" : ""} to it in the graphs shown`);
    const id = links.layers[layer][filter].replace(".", "-");
    const captions = [...card.querySelectorAll(".matches figcaption")];
    const best = captions.map((caption, i) => copyOf(`m-${id}-${i}`, caption.textContent));
    inspector.replaceChildren(what, group(copyOf("p-" + id, "the filter")), group(...best, element("div", "best matching ego-graphs of the training data and their kernel values", "what")));
  };

  const showNode = (node) => {
    const graph = node.closest("svg").dataset.graph, n = Number(node.dataset.n);
    const link = links.graphs[graph], members = new Set(link.ego[n]);
    for (const svg of svgs.filter((one) => one.dataset.graph === graph)) {
      svg.classList.add("pointing");
      for (const m of members) nodesOf.get(svg)[m].classList.add("ego");
      nodesOf.get(svg)[n].classList.add("here");
      for (const line of svg.querySelectorAll(".edges line")) {
        const inside = members.has(Number(line.dataset.a)) && members.has(Number(line.dataset.b));
        line.classList.toggle("ego", inside);
      }
    }
    const what = element("div", "", "what");
    const label = link.labels[n] ? ` (${link.labels[n]})` : "";
    const share = link.contribution[n];
    what.append(element("b", `Node ${link.nodes[n]}${label}`), element("br"));
    what.append(`ego-graph of ${members.size} node${members.size === 1 ? "" : "s"}`, element("br"));
    what.append(`contribution to the logit ${share >= 0 ? "+" : "−"}${Math.abs(share).toFixed(3)}`);
    const groups = link.response.map((response, layer) => {
      const order = response[n].map((value, i) => [value, i]).sort((a, b) => b[0] - a[0]);
      const best = order.slice(0, 3).filter(([value]) => value > 0);
      const figures = best.map(([value, i]) => {
        const id = links.layers[layer][i];
        document.getElementById("f-" + id.replace(".", "-")).classList.add("match");
        return copyOf("p-" + id.replace(".", "-"), `filter ${id}: ${value} %`);
      });
      return group(...figures);
    });
    inspector.replaceChildren(what, ...groups);
  };

  const subject = (target) => target instanceof Element ? target.closest(".filter, .node") : null;

  const show = (one) => {
    clear();
    if (!one) return;
    if (one.classList.contains("filter")) showFilter(one);
    else showNode(one);
  };

  for (const name of ["pointerover", "focusin"]) {
    document.addEventListener(name, (event) => {
      const one = subject(event.target);
      if (one && !pinned) show(one);
    });
  }
  for (const name of ["pointerout", "focusout"]) {
    document.addEventListener(name, (event) => {
      if (subject(event.target) && !pinned && !subject(event.relatedTarget)) show(null);
    });
  }
  document.addEventListener("click", (event) => {
    if (event.target.closest("button, a, #inspector")) return;
    const one = subject(event.target);
    pinned = one && one !== pinned ? one : null;
    show(one && pinned ? one : null);
  });

  const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  document.addEventListener("keydown", (event) => {
    const one = subject(document.activeElement);
    if (event.key === "Escape") {
      pinned = null;
      show(null);
    } else if (one && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      pinned = pinned === one ? null : one;
      show(one);
    } else if (one && one.classList.contains("node") && event.key in moves) {
      event.preventDefault();
      const nodes = nodesOf.get(one.closest("svg"));
      const next = nodes[(nodes.indexOf(one) + moves[event.key] + nodes.length) % nodes.length];
      one.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      pinned = null;
      next.focus();
    }
  });

  const press = (button, others) => {
    for (const one of others) one.setAttribute("aria-pressed", String(one === button));
  };
  for (const button of document.querySelectorAll("button[data-mode]")) {
    button.addEventListener("click", () => {
      press(button, document.querySelectorAll("button[data-mode]"));
      document.getElementById("graphs").dataset.mode = button.dataset.mode;
    });
  }
  const galleries = [...document.querySelectorAll(".gallery")].map((list) => [list, [...list.children]]);
  for (const button of document.querySelectorAll("button[data-sort]")) {
    button.addEventListener("click", () => {
      press(button, document.querySelectorAll("button[data-sort]"));
      for (const [list, cards] of galleries) {
        const order = [...cards];
        if (button.dataset.sort === "shape") {
          order.sort((a, b) => a.dataset.group - b.dataset.group);
        }
        list.append(...order);
      }
    });
  }
})();
