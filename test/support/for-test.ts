import { onTestFinished } from 'vitest'

/** Ends what a helper opened for a test when that test is over, the last opened first. A test itself says `await using`. */
export function forTest<T extends AsyncDisposable | Disposable>(opened: T): T {
  onTestFinished(async () => {
    await using open = new AsyncDisposableStack()
    open.use(opened)
  })
  return opened
}
