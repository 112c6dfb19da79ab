/// Why a command line cannot be followed; the text tells the user what to write instead.
struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// How the process ends.
enum ExitCode: Int32 {
    case success = 0
    /// Could not connect, nothing arrived, or a limit was passed.
    case failure = 1
    /// The command line is wrong.
    case usage = 2
    /// The tool itself was the bottleneck: the numbers say nothing of the server.
    case void = 3
}
