/** Calls `read` immediately, and then every `ms` while the page is visible. Calls never overlap. */
export function poll(ms: number, read: (hasEnded: () => boolean) => Promise<void>) {
  let [isReading, hasEnded] = [false, false]
  const readNow = async () => {
    if (isReading || hasEnded || document.hidden) return
    isReading = true
    try {
      await read(() => hasEnded)
    } finally {
      isReading = false
    }
  }
  const later = () => void readNow()
  later()
  const timer = setInterval(later, ms)
  document.addEventListener('visibilitychange', later)
  const end = () => {
    hasEnded = true
    clearInterval(timer)
    document.removeEventListener('visibilitychange', later)
  }
  return { readNow, end }
}
