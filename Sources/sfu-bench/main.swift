import Dispatch
import Foundation

/// Writes a message to standard error, and ends the process.
func fail(_ message: String, _ code: ExitCode) -> Never {
    FileHandle.standardError.write(Data("sfu-bench: \(message)\n".utf8))
    exit(code.rawValue)
}

/// Makes the first SIGINT or SIGTERM end the run, and the second one end the process.
///
/// The handlers run on a global Dispatch queue, so they must not be isolated to the main actor.
/// - Returns: the signal sources; the caller cancels them when the run is over.
nonisolated func interrupting(_ run: any Interruptible) -> [any DispatchSourceSignal] {
    [SIGINT, SIGTERM].map { number in
        // The default action would end the process before the source's handler runs.
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        source.setEventHandler { @Sendable in
            if run.isInterrupted { exit(ExitCode.failure.rawValue) }
            run.interrupt()
        }
        source.resume()
        return source
    }
}

/// Performs a run that has its own report format, and writes the report.
nonisolated func finish(_ bench: some ReportingRun, _ options: Options) async throws -> ExitCode {
    let signals = interrupting(bench)
    let report = try await bench.run()
    for source in signals { source.cancel() }
    try report.write(options.report)
    return report.verdict.exitCode
}

/// Performs a run with generator threads, and writes its report.
nonisolated func finish(_ bench: Bench, _ options: Options) async throws -> ExitCode {
    let signals = interrupting(bench)
    defer { for source in signals { source.cancel() } }
    let report: Report
    do {
        // Join the threads after a failed run, too: `exit` cleans up OpenSSL while they may still use it.
        defer { bench.stop() }
        report = try await bench.run()
    }
    try ReportWriter.write(report, options.report)
    return report.verdict.exitCode
}

// `sync`, `interact`, `demo` and the protocols other than WebRTC are runs of their own; all other commands share
// `Bench`.
do {
    let arguments = Array(CommandLine.arguments.dropFirst())
    let outcome = try CommandLineParser.parse(arguments, environment: ProcessInfo.processInfo.environment)
    switch outcome {
    case .help(let text): print(text, terminator: "")
    case .run(let options) where options.command == .sync:
        exit(try await finish(SyncBench(options), options).rawValue)
    case .run(let options) where options.command == .interact:
        exit(try await finish(InteractBench(options), options).rawValue)
    case .run(let options) where options.streamProtocol == .hls:
        exit(try await finish(HLSBench(options), options).rawValue)
    case .run(let options) where options.streamProtocol == .rtmp:
        exit(try await finish(RTMPBench(options), options).rawValue)
    case .run(let options) where options.streamProtocol == .srt:
        exit(try await finish(SRTBench(options), options).rawValue)
    case .run(let options) where options.command == .demo:
        let demo = try await DemoRun(options)
        let signals = interrupting(demo)
        try await demo.run()
        for source in signals { source.cancel() }
    case .run(let options): exit(try await finish(Bench(options), options).rawValue)
    }
} catch let error as UsageError {
    fail(error.description, .usage)
} catch {
    fail("\(error)", .failure)
}
