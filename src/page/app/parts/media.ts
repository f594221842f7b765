/** A media query as a value. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

export function useMedia(query: string): boolean {
  const matches = useSignal(matchMedia(query).matches)
  useEffect(() => {
    const list = matchMedia(query)
    const tell = () => {
      matches.value = list.matches
    }
    list.addEventListener('change', tell)
    return () => list.removeEventListener('change', tell)
  }, [query])
  return matches.value
}
