// What a module's declarations say that its source does not, and the other way round: names of exports, and of the
// members of classes. Prints one line for each, and nothing when they agree.
//
//     node declarations.js FOLDER MODULE...
//
// Wants Debian's node-typescript. Types are compared by nobody but people: the sources are JavaScript.
"use strict";

const path = require("path");
const typescript = require("/usr/share/nodejs/typescript");

const [folder, ...names] = process.argv.slice(2);
const options = {
  allowJs: true, checkJs: false, noEmit: true, strict: true, target: typescript.ScriptTarget.ES2022,
  module: typescript.ModuleKind.ES2022, moduleResolution: typescript.ModuleResolutionKind.NodeJs,
};

// A source that imports another one is to find that, and not what is declared of it.
const host = typescript.createCompilerHost(options);
const usual = host.fileExists;
host.fileExists = (name) => !(hidesDeclarations && name.startsWith(folder) && name.endsWith(".d.ts")) && usual(name);
let hidesDeclarations = false;

/** Exports of a file, each with its members where it is a class: all of them, and those that are our own and for others. */
function describe(file) {
  hidesDeclarations = file.endsWith(".js");
  const program = typescript.createProgram([file], options, host);
  const checker = program.getTypeChecker();
  const module = checker.getSymbolAtLocation(program.getSourceFile(file));
  const described = new Map();
  for (const symbol of checker.getExportsOfModule(module)) {
    const target = symbol.flags & typescript.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    if (!(target.flags & typescript.SymbolFlags.Value)) continue;
    const isClass = target.flags & typescript.SymbolFlags.Class;
    const members = isClass ? checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(target)) : [];
    const isOurs = (member) => (member.declarations ?? []).some((each) =>
      path.resolve(each.getSourceFile().fileName).startsWith(folder));
    const isPrivate = (member) => member.name.includes("#")
      || member.getJsDocTags(checker).some(({ name }) => name === "internal");
    const names = (some) => new Set(some.map(({ name }) => name));
    described.set(symbol.name, {
      all: names(members), ours: names(members.filter((member) => isOurs(member) && !isPrivate(member))),
    });
  }
  return described;
}

/** What is in one and not in the other. */
function* difference(some, others, words) {
  for (const [name, { ours }] of some) {
    const other = others.get(name);
    if (!other) yield `${name} ${words}`;
    else for (const member of ours) if (!other.all.has(member)) yield `${name}.${member} ${words}`;
  }
}

for (const name of names) {
  const source = describe(path.join(folder, `${name}.js`));
  const declared = describe(path.join(folder, `${name}.d.ts`));
  if (!source.size) console.log(`${name}: nothing is exported`);
  for (const line of difference(declared, source, "is declared and is not there")) console.log(`${name}: ${line}`);
  for (const line of difference(source, declared, "is there and is not declared")) console.log(`${name}: ${line}`);
}
