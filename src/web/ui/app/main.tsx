/** The page: mounts it, and asks the daemon who we are. */
import { render } from 'preact'
import './preferences.ts'
import { open } from './session.ts'
import { Shell } from './views/shell.tsx'

const root = document.querySelector('#page')
if (root !== null) render(<Shell />, root)
await open()
