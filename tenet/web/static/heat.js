// Attention maps as colours over a picture: the same colours as in `tenet explain`.

const KNOTS = [[0.22, 0.01, -0.09], [0.405, 0.115, -0.105], [0.59, 0.175, 0.035], [0.775, 0.075, 0.14], [0.96, -0.025, 0.1]];

function rgb(value) {
  const place = Math.min(0.9999, Math.max(0, value)) * (KNOTS.length - 1);
  const low = Math.floor(place);
  const [L, a, b] = KNOTS[low].map((one, axis) => one + (KNOTS[low + 1][axis] - one) * (place - low));
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const light = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return light.map((one) => {
    const bounded = Math.min(1, Math.max(0, one));
    return Math.round(255 * (bounded <= 0.0031308 ? 12.92 * bounded : 1.055 * bounded ** (1 / 2.4) - 0.055));
  });
}

/** A part (xyxy in its pixels) of an image on a canvas, with a map over it or without. */
export function drawPart(canvas, image, box, map = null) {
  const [x1, y1, x2, y2] = box;
  const [width, height] = [Math.max(1, x2 - x1), Math.max(1, y2 - y1)];
  const side = 220;
  const scale = side / Math.max(width, height);
  canvas.width = side;
  canvas.height = side;
  const [w, h] = [width * scale, height * scale];
  const [left, top] = [(side - w) / 2, (side - h) / 2];
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, side, side);
  pen.imageSmoothingQuality = "high";
  if (map) pen.filter = "grayscale(1)";
  pen.drawImage(image, x1, y1, width, height, left, top, w, h);
  pen.filter = "none";
  if (!map) return;
  const small = document.createElement("canvas");
  small.width = map[0].length;
  small.height = map.length;
  const brush = small.getContext("2d");
  const pixels = brush.createImageData(small.width, small.height);
  map.flat().forEach((value, place) => pixels.data.set([...rgb(value), Math.round(255 * 0.75 * (0.45 + 0.55 * value))], 4 * place));
  brush.putImageData(pixels, 0, 0);
  pen.drawImage(small, left, top, w, h);
}

export function loadImage(address) {
  return new Promise((done, fail) => {
    const image = new Image();
    image.onload = () => done(image);
    image.onerror = () => fail(new Error("The browser cannot show this picture."));
    image.src = address;
  });
}
