/** Asks for the password. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api } from '../api.ts'
import { Glyph } from '../parts/glyph.tsx'
import { open } from '../session.ts'
import { S } from '../strings.ts'

export function Login() {
  const field = useRef<HTMLInputElement>(null)
  const failure = useSignal<string | undefined>(undefined)
  const busy = useSignal(false)
  useEffect(() => field.current?.focus(), [])
  const login = async () => {
    const { current } = field
    if (busy.value || current === null || current.value === '') return
    busy.value = true
    const result = await api.login(current.value)
    busy.value = false
    if (result.ok) return await open()
    failure.value = result.message
    current.select()
  }
  return (
    <main class="gate">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          void login()
        }}
      >
        <h1>
          <Glyph name="hub" size={26} /> {S.title}
        </h1>
        <p class="quiet">{S.login.hint}</p>
        <input
          type="text"
          class="hidden"
          name="username"
          autocomplete="username"
          value="hub2mqtt"
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <label>
          {S.login.password}
          <input ref={field} type="password" name="password" autocomplete="current-password" required />
        </label>
        <p class="bad-text" role="alert">
          {failure.value}
        </p>
        <button type="submit" class="primary" disabled={busy.value}>
          {S.login.action}
        </button>
      </form>
    </main>
  )
}
