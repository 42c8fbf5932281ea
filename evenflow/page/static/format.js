// Numbers and times for people.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

export const time = (seconds) => clock.format(new Date(seconds * 1000));

export const percent = (share) => `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)}%`;

export function count(number) {
  if (number == null) return "–";
  const units = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [size, unit] of units) if (Math.abs(number) >= size) return `${trim(number / size)} ${unit}`;
  return `${trim(number)}`;
}

export const number = (value) => (Number.isInteger(value) ? value.toLocaleString() : String(Number(value.toPrecision(4))));

export function bytes(number) {
  const units = [[1 << 30, "GB"], [1 << 20, "MB"], [1 << 10, "kB"]];
  for (const [size, unit] of units) if (number >= size) return `${trim(number / size)} ${unit}`;
  return `${number} B`;
}

export function duration(seconds) {
  if (seconds == null) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 90) return `${trim(seconds)} s`;
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60].map((part) => String(part).padStart(2, "0"));
  return parts[0] === "00" ? `${parts[1]}:${parts[2]}` : parts.join(":");
}

export const milliseconds = (number) => (number == null ? "–" : number >= 1000 ? `${trim(number / 1000)} s` : `${trim(number)} ms`);

function trim(number) {
  return number >= 100 ? number.toFixed(0) : number >= 10 ? String(Number(number.toFixed(1))) : String(Number(number.toFixed(2)));
}
