/** Texts of the hub, which may be of any length and hold anything, the API key too. */

/** Takes the API key out of a text. */
export type Clean = (text: string) => string

export const asItIs: Clean = (text) => text

/** A text cut to a length, in UTF-16 code units. The key goes before the cut: a part of it would not be recognised. */
export function shortText(text: string, length: number, clean: Clean): string {
  const whole = clean(text)
  if (whole.length <= length) return whole
  const short = whole.slice(0, length)
  // Half of a surrogate pair is no character.
  return /[\uD800-\uDBFF]$/.test(short) ? short.slice(0, -1) : short
}
