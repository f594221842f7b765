/** Checked by the compiler alone: a name that is no command must not compile. */
import { expectTypeOf } from 'vitest'
import { type CommandName, table } from '../../src/contract/commands.ts'

expectTypeOf<'restart'>().toExtend<CommandName<'app'>>()
expectTypeOf<'speak'>().toExtend<CommandName<'hub'>>()
expectTypeOf<CommandName<'bridge'>>().toEqualTypeOf<'log-level' | 'ping'>()
expectTypeOf<'speak'>().not.toExtend<CommandName<'app'>>()

table([{ name: 'enable' }, { name: 'enabled', means: ['enable'] }])
// @ts-expect-error a command can only mean one that there is
table([{ name: 'enable' }, { name: 'enabled', means: ['enabel'] }])
