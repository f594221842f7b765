/** This is not part of `world.ts`, because programs that run without Vitest import that module. */
import { test as base } from 'vitest'
import { World, type WorldOptions } from './world.ts'

export const test = base.extend<{ readonly options: WorldOptions; readonly world: World }>({
  options: {},
  world: async ({ options }, use) => {
    await using world = await World.start(options)
    await use(world)
  },
})
