// From the grid of the server (layer along the flow, lane across) to pixels: left to right, or down on a phone.
const BOX = { width: 186, height: 94 };
const END = { width: 104, height: 46 };
const GAP = { along: 58, across: 26 };
const EDGE = 8;
const LOOP = 26;
const LEAST_SCALE = 0.72;
const NARROW = 620;

const measure = (drawing) => {
  const all = [...drawing.boxes, ...drawing.arrows.flatMap((arrow) => arrow.bends)];
  return { lanes: Math.max(...all.map(({ lane }) => lane), 0) + 1, loops: drawing.arrows.filter(({ back }) => back).length };
};

// Where each layer begins and how thick it is; one of sources or sinks alone is thinner than one of operators.
const layersOf = (drawing, down) => {
  const [box, end] = down ? [BOX.height, END.height] : [BOX.width, END.width];
  const gap = down ? 34 : GAP.along;
  let at = EDGE;
  return Array.from({ length: drawing.layers }, (_, n) => {
    const here = drawing.boxes.filter(({ layer }) => layer === n);
    const thick = here.length && here.every(({ kind }) => kind !== "operator") ? end : box;
    const found = { at, middle: at + thick / 2, thick };
    at += thick + gap;
    return found;
  });
};

export const frameOf = (drawing, room) => {
  const down = room < NARROW;
  const { lanes, loops } = measure(drawing);
  const layers = layersOf(drawing, down);
  const lane = down ? BOX.width + GAP.across : BOX.height + GAP.across;
  const across = EDGE + lanes * lane - GAP.across;
  const last = layers.at(-1) ?? { at: 0, thick: 0 };
  const along = last.at + last.thick + EDGE;
  const whole = across + EDGE + loops * LOOP;
  const [width, height] = down ? [whole, along] : [along, whole];
  const scale = Math.max(Math.min((room - 2) / width, 1), LEAST_SCALE);
  const size = (box) => (box.kind === "operator" ? BOX : END);
  const centre = ({ layer, lane: at }) => {
    const one = layers[layer].middle;
    const other = EDGE + at * lane + (down ? BOX.width : BOX.height) / 2;
    return down ? { x: other, y: one } : { x: one, y: other };
  };
  const corner = (box) => {
    const { x, y } = centre(box);
    return { x: x - size(box).width / 2, y: y - size(box).height / 2 };
  };
  const boxes = Object.fromEntries(drawing.boxes.map((box) => [box.id, box]));
  const sides = { down, centre, size, boxes, across };
  const backs = drawing.arrows.filter(({ back }) => back);
  const path = (arrow) => (arrow.back ? loopPath(arrow, sides, backs.indexOf(arrow)) : forwardPath(arrow, sides));
  return { box: BOX, end: END, width, height, shownWidth: width * scale, shownHeight: height * scale, corner, path };
};

// Out of a box, past its bends, into the next, in curves that leave and arrive along the flow.
const forwardPath = (arrow, { down, centre, size, boxes }) => {
  const [from, to] = [boxes[arrow.origin], boxes[arrow.target]];
  const out = edge(centre(from), size(from), down, 1);
  const into = edge(centre(to), size(to), down, -1);
  const points = [out, ...arrow.bends.map(centre), into];
  return points.slice(1).reduce((path, point, n) => `${path}${curve(points[n], point, down)}`, `M${out.x} ${out.y}`);
};

const edge = ({ x, y }, { width, height }, down, way) =>
  down ? { x, y: y + (way * height) / 2 } : { x: x + (way * width) / 2, y };

const curve = (a, b, down) => {
  const [mx, my] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
  return down ? `C${a.x} ${my} ${b.x} ${my} ${b.x} ${b.y}` : `C${mx} ${a.y} ${mx} ${b.y} ${b.x} ${b.y}`;
};

// A loop goes back beside everything else, each in a track of its own.
const loopPath = (arrow, { down, centre, size, boxes, across }, track) => {
  const [from, to] = [boxes[arrow.origin], boxes[arrow.target]];
  const far = across + 14 + track * LOOP;
  const [a, b] = [centre(from), centre(to)];
  const [half, other] = down ? [size(from).width / 2, size(to).width / 2] : [size(from).height / 2, size(to).height / 2];
  const [p, q] = [24 - track * 4, -24 + track * 4];
  return down
    ? `M${a.x + half} ${a.y + p}H${far - 10}Q${far} ${a.y + p} ${far} ${a.y + p - 10}V${b.y + q + 10}Q${far} ${b.y + q} ${far - 10} ${b.y + q}H${b.x + other}`
    : `M${a.x + p} ${a.y + half}V${far - 10}Q${a.x + p} ${far} ${a.x + p - 10} ${far}H${b.x + q + 10}Q${b.x + q} ${far} ${b.x + q} ${far - 10}V${b.y + other}`;
};
