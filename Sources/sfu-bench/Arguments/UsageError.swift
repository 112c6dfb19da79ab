/// Why a command line is wrong; the text tells the user what to write instead.
struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// The exit status of the process.
enum ExitCode: Int32 {
    case success = 0
    /// A client could not connect, nothing arrived, or a limit was exceeded.
    case failure = 1
    /// The command line is wrong.
    case usage = 2
    /// The tool itself was the bottleneck, so the numbers do not describe the server.
    case void = 3
}
