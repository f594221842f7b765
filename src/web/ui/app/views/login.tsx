/** Asks for the password. */
import { useEffect, useRef } from 'preact/hooks'
import { api, type Result } from '../api.ts'
import { useAsked } from '../parts/controls.tsx'
import { Glyph } from '../parts/icons.tsx'
import { open } from '../session.ts'
import { defineStrings } from '../strings.ts'
import { PRODUCT } from '../terms.ts'

const text = defineStrings('login', {
  hint: 'This page is protected by a password.',
  password: 'Password',
  action: 'Log in',
  wrong: 'The password is not correct.',
})

export function Login() {
  const field = useRef<HTMLInputElement>(null)
  const { busy, result, ask } = useAsked<Result<unknown>>()
  useEffect(() => field.current?.focus(), [])
  const login = async () => {
    const { current } = field
    if (busy.value || current === null || current.value === '') return
    if ((await ask(() => api.login(current.value))).ok) await open()
    else current.select()
  }
  const failure = result.value?.ok === false ? result.value : undefined
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
          <Glyph name="hub" size={26} /> {PRODUCT}
        </h1>
        <p class="quiet">{text.hint}</p>
        <input
          type="text"
          class="hidden"
          name="username"
          autocomplete="username"
          value={PRODUCT}
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <label class="field">
          <span>{text.password}</span>
          <input ref={field} type="password" name="password" autocomplete="current-password" required />
        </label>
        <p class="bad-text" role="alert">
          {failure?.status === 401 ? text.wrong : failure?.message}
        </p>
        <button type="submit" class="primary" disabled={busy.value}>
          {text.action}
        </button>
      </form>
    </main>
  )
}
