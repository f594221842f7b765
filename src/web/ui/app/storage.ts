/** Choices that the browser keeps. A browser can refuse to keep any. */

type Place = 'localStorage' | 'sessionStorage'

export function stored(place: Place, key: string): string | null {
  try {
    return globalThis[place].getItem(`hub2mqtt.${key}`)
  } catch {
    return null
  }
}

export function store(place: Place, key: string, value: string): void {
  try {
    globalThis[place].setItem(`hub2mqtt.${key}`, value)
  } catch {
    // It is chosen until the page is closed.
  }
}
