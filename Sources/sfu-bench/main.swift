import Foundation

do {
    let arguments = Array(CommandLine.arguments.dropFirst())
    switch try CommandLineParser.parse(arguments, environment: ProcessInfo.processInfo.environment) {
    case .help(let text): print(text, terminator: "")
    case .run(let options): print(options.command.rawValue)
    }
} catch {
    FileHandle.standardError.write(Data("sfu-bench: \(error)\n".utf8))
    exit(ExitCode.usage.rawValue)
}
