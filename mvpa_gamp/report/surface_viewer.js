"use strict";
// The viewer of maps on meshes: what the viewer of volumes (page.js) has, with one panel in which the surface turns.
// Triangles are drawn into an array of pixels with their depth, so that no graphics hardware is needed.
const surfaceViewer = (Viewer, make, volumeOf) => {
  const WIDTH = 760, HEIGHT = 520, FADED = 0.4, TURN = 12;  // pixels, opacity, degrees of a key
  const VIEWS = { left: [180, 0], right: [0, 0], top: [-90, 90], bottom: [90, -90], front: [90, 0], back: [-90, 0] };
  const SIDES = [["R", 1, 0, 0], ["A", 0, 1, 0], ["S", 0, 0, 1]];
  const radians = degrees => degrees * Math.PI / 180;
  const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer;
  const meshes = {};  // those of a subject are unpacked once for all its comparisons
  const meshOf = name => {
    if (meshes[name]) return meshes[name];
    const { points, faces, wide, parts } = document.getElementById(name).dataset;
    const corners = new (wide ? Uint32Array : Uint16Array)(bytes(faces));
    return meshes[name] = { points: new Int16Array(bytes(points)), corners, parts: JSON.parse(parts) };
  };

  return class extends Viewer {
    async load() {
      this.mesh = meshOf(this.view.ground);
      await super.load();
    }

    build(figure) {
      const { view } = this, label = figure.dataset.label;
      const controls = this.controls(label);
      this.turned = [...VIEWS[view.first]];
      this.shown = make("select", {}, ...["both", "left", "right"].map(part => make("option", {}, part)));
      this.shown.addEventListener("change", () => this.draw());
      const from = make("select", {}, ...Object.keys(VIEWS).map(side => make("option", {}, side)));
      from.value = view.first;
      from.addEventListener("change", () => { this.turned = [...VIEWS[from.value]]; this.draw(); });
      controls.insertBefore(make("label", {}, "Hemispheres ", this.shown), controls.lastChild);
      controls.insertBefore(make("label", {}, "From ", from), controls.lastChild);
      const canvas = make("canvas", { tabindex: 0, role: "img", width: WIDTH, height: HEIGHT, class: "mesh" });
      this.panels = [{ canvas }];
      this.listen(canvas);
      this.help = make("figcaption");
      const row = make("div", { class: "panels", style: `max-width: ${WIDTH}px` }, make("div", { style: "flex: 1" }, canvas));
      figure.replaceChildren(...figure.querySelectorAll(".stamp"), controls, row, this.readout, this.help);
    }

    how() {
      return "Drag or use the arrow keys to turn the surface, click a vertex to read its value. Letters: R right, A " +
        "anterior, S superior.";
    }

    listen(canvas) {
      let last = null, moved = 0;
      canvas.addEventListener("pointerdown", event => {
        last = [event.clientX, event.clientY]; moved = 0;
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointermove", event => {
        if (!last) return;
        const by = [event.clientX - last[0], event.clientY - last[1]];
        last = [event.clientX, event.clientY]; moved += Math.abs(by[0]) + Math.abs(by[1]);
        this.turn(-by[0] / 2, by[1] / 2);
      });
      canvas.addEventListener("pointerup", event => {
        last = null;
        if (moved > 4) return;
        const box = canvas.getBoundingClientRect();
        const x = Math.floor((event.clientX - box.left) / box.width * WIDTH);
        const vertex = this.owner[Math.floor((event.clientY - box.top) / box.height * HEIGHT) * WIDTH + x];
        if (vertex >= 0) this.go(this.placeOf(vertex));
      });
      canvas.addEventListener("keydown", event => {
        const by = { ArrowLeft: [TURN, 0], ArrowRight: [-TURN, 0], ArrowUp: [0, TURN], ArrowDown: [0, -TURN] }[event.key];
        if (!by) return;
        event.preventDefault();
        this.turn(...by);
      });
    }

    turn(around, over) {
      this.turned = [this.turned[0] + around, Math.max(-90, Math.min(90, this.turned[1] + over))];
      this.draw();
    }

    go(place) {  // a vertex that is hidden is turned to the front
      super.go(place);
      if (this.seen) return;
      const side = this.hemisphere()[0].name;
      if (this.shown.value !== side) this.shown.value = "both";
      this.turned = [...VIEWS[side]];
      this.draw();
      if (this.seen) return;  // it is on the inner side
      this.shown.value = side;
      this.turned = [...VIEWS[side === "left" ? "right" : "left"]];
      this.draw();
    }

    hemisphere() {  // and the number in it of the chosen vertex
      const [first, second] = this.mesh.parts, vertex = this.index(this.at);
      return second && vertex >= first.vertices ? [second, vertex - first.vertices] : [first, vertex];
    }

    placeOf(vertex) { const [nx] = this.view.shape; return [vertex % nx, Math.floor(vertex / nx), 0]; }

    axes() {  // to the right, upwards, towards the viewer
      const [a, e] = this.turned.map(radians), [ca, sa, ce, se] = [Math.cos(a), Math.sin(a), Math.cos(e), Math.sin(e)];
      return [[-sa, ca, 0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]];
    }

    project() {  // pixels and depth of every vertex: the mesh fits the canvas however it is turned
      const { points } = this.mesh, n = points.length / 3, out = new Float32Array(3 * n), [u, v, w] = this.axes();
      const scale = 0.49 * HEIGHT / 32767;
      for (let i = 0; i < 3 * n; i += 3) {
        const x = points[i], y = points[i + 1], z = points[i + 2];
        out[i] = WIDTH / 2 + scale * (u[0] * x + u[1] * y + u[2] * z);
        out[i + 1] = HEIGHT / 2 - scale * (v[0] * x + v[1] * y + v[2] * z);
        out[i + 2] = scale * (w[0] * x + w[1] * y + w[2] * z);
      }
      return out;
    }

    colours(threshold) {  // red, green and blue of every vertex
      const n = this.mesh.points.length / 3, out = new Uint8Array(3 * n);
      for (let i = 0; i < n; i++) {
        const value = this.values[i], size = this.size(value), over = size > 0 && size >= threshold;
        const faded = this.map.fades && this.selected && !this.selected[i];
        const share = over ? faded ? FADED : 1 : 0, colour = this.colour(value);
        for (let c = 0; c < 3; c++) out[3 * i + c] = share * colour[c] + (1 - share) * this.ground[i];
      }
      return out;
    }

    drawPanel({ canvas }, threshold) {
      const at = this.project(), colours = this.colours(threshold), image = new ImageData(WIDTH, HEIGHT);
      image.data.fill(255);
      this.depth = new Float32Array(WIDTH * HEIGHT).fill(-Infinity);
      this.owner = new Int32Array(WIDTH * HEIGHT).fill(-1);
      let first = 0;
      for (const { name, faces } of this.mesh.parts) {
        if (["both", name].includes(this.shown.value))
          for (let f = first; f < first + 3 * faces; f += 3) this.triangle(f, at, colours, image.data);
        first += 3 * faces;
      }
      const context = canvas.getContext("2d");
      context.putImageData(image, 0, 0);
      this.drawMark(context, at);
      this.drawLetters(context);
      canvas.setAttribute("aria-label", `surface, turned to ${Math.round(this.turned[0])} and ${Math.round(this.turned[1])} degrees; arrow keys turn it`);
    }

    triangle(f, at, colours, pixels) {
      const { corners } = this.mesh, [i, j, k] = [corners[f], corners[f + 1], corners[f + 2]];
      const [ax, ay, az] = [at[3 * i], at[3 * i + 1], at[3 * i + 2]], [bx, by, bz] = [at[3 * j], at[3 * j + 1], at[3 * j + 2]];
      const [cx, cy, cz] = [at[3 * k], at[3 * k + 1], at[3 * k + 2]];
      const area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay);
      if (!area) return;
      const nx = (by - ay) * (cz - az) - (bz - az) * (cy - ay), ny = (bz - az) * (cx - ax) - (bx - ax) * (cz - az);
      const light = 0.55 + 0.45 * Math.abs(area) / Math.hypot(nx, ny, area);
      const right = Math.min(WIDTH - 1, Math.ceil(Math.max(ax, bx, cx))), down = Math.min(HEIGHT - 1, Math.ceil(Math.max(ay, by, cy)));
      for (let y = Math.max(0, Math.floor(Math.min(ay, by, cy))); y <= down; y++)
        for (let x = Math.max(0, Math.floor(Math.min(ax, bx, cx))); x <= right; x++) {
          const q = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / area, r = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / area;
          const p = 1 - q - r, o = y * WIDTH + x;
          if (p < 0 || q < 0 || r < 0) continue;
          const depth = p * az + q * bz + r * cz;
          if (depth <= this.depth[o]) continue;
          const vertex = p >= q && p >= r ? i : q >= r ? j : k;  // the nearest corner: values are not mixed
          this.depth[o] = depth; this.owner[o] = vertex;
          for (let c = 0; c < 3; c++) pixels[4 * o + c] = light * colours[3 * vertex + c];
        }
    }

    drawMark(context, at) {  // a ring around the chosen vertex where it can be seen
      const i = 3 * this.index(this.at), [x, y] = [Math.round(at[i]), Math.round(at[i + 1])];
      this.seen = this.depth[y * WIDTH + x] <= at[i + 2] + 6;
      if (!this.seen) return;
      for (const [colour, width] of [["#fff", 5], ["#22282e", 2]]) {
        context.strokeStyle = colour; context.lineWidth = width;
        context.beginPath(); context.arc(x, y, 13, 0, 2 * Math.PI); context.stroke();
      }
    }

    drawLetters(context) {  // which way is right, anterior and superior
      const [u, v, w] = this.axes(), along = (axis, side) => axis.reduce((sum, part, i) => sum + part * side[i], 0);
      context.font = "600 15px sans-serif"; context.textAlign = "center"; context.textBaseline = "middle";
      for (const [letter, ...side] of SIDES) {
        const x = 48 + 26 * along(u, side), y = HEIGHT - 48 - 26 * along(v, side);
        context.strokeStyle = "#aab2b9"; context.lineWidth = 1.5;
        context.beginPath(); context.moveTo(48, HEIGHT - 48); context.lineTo(x, y); context.stroke();
        context.fillStyle = along(w, side) < -0.3 ? "#aab2b9" : "#5d666f";
        context.fillText(letter, x + 11 * along(u, side), y - 11 * along(v, side));
      }
    }

    describe() {
      const [part, vertex] = this.hemisphere();
      this.readout.textContent = `${part.name} hemisphere, vertex ${vertex}: ${this.said()}`;
    }
  };
};
