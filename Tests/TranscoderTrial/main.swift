import Glibc
import Transcoder
import Trespass

/// A transcoder that does what one does that was taken over, when it is given a key frame that begins with one of these
/// words, and nothing else otherwise.
private enum Word: String, CaseIterable {
    /// Dies: what a bitstream does that finds a fault in a decoder.
    case poison
    /// Tries what is forbidden, and reports the names of what was possible all the same.
    case trespass
    /// Reports without end.
    case chatter
    /// Writes some lines to standard error, then reports.
    case complain
    /// Writes to standard error without end.
    case rant
}

private func perform(_ word: Word, _ request: PreviewRequest, _ environment: JobEnvironment) {
    let line = Array("something is wrong\n".utf8)
    switch word {
    case .poison: environment.register.whileDecoding(request.source) { abort() }
    case .trespass: environment.report(Array(String(cString: trespass(getppid())).utf8))
    case .chatter: while true { environment.report([]) }
    case .complain:
        for _ in 0..<500 { _ = write(2, line, line.count) }
        environment.report([])
    case .rant: while true { _ = write(2, line, line.count) }
    }
}

private var arguments = Array(CommandLine.arguments.dropFirst())
/// Behaves as under a kernel without seccomp.
private let isUnconfined = arguments.first == "--unconfined"
if isUnconfined { arguments.removeFirst() }

exit(
    TranscoderProcess.run(
        Array(arguments.dropFirst()),
        special: { kind, body, environment in
            guard kind == .preview, let request = try? PreviewRequest(body),
                let payload = request.payloads.first,
                let word = Word.allCases.first(where: { payload.starts(with: Array($0.rawValue.utf8)) })
            else { return nil }
            perform(word, request, environment)
            return nil
        },
        confine: { parent, niceness in
            isUnconfined
                ? [Confinement.Refusal(.calls, code: EINVAL)]
                : Confinement.confine(parent: parent, niceness: niceness)
        }))
