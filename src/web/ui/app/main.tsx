/** The page: mounts it, and requests the session from the daemon. */
import { render } from 'preact'
import './preferences.ts'
import { open } from './session.ts'
import { Shell } from './views/shell.tsx'

const root = document.querySelector('#page')
if (root !== null) render(<Shell />, root)
await open()
