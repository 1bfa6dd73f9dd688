// `node tools/run.mjs tools/bundle-programs.ts <folder> <program>...`: bundles each program as if it stood in the
// folder, and prints the report of bundle.ts for each, as JSON. A process of its own, because a bundler opens more than
// a test may leave behind.
import { bundle } from './bundle.ts'

const [folder = '', ...programs] = process.argv.slice(2)

const bundles = await Promise.all(programs.map((program) => bundle({ program, folder })))
console.log(JSON.stringify(bundles))
