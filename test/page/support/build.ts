/** Builds the page once, before the workers need it. */
import { builtPage } from '../../../src/web/ui/build.ts'

export default async function setup(): Promise<void> {
  await builtPage()
}
