import Glibc
import Transcoder

/// A transcoder that dies of key frames that begin with this, and of nothing else: what a bitstream does that finds a
/// fault in a decoder.
private let mark: [UInt8] = Array("poison".utf8)

exit(
    TranscoderProcess.run(Array(CommandLine.arguments.dropFirst(2))) { kind, body, environment in
        guard kind == .preview, let request = try? PreviewRequest(body),
            request.payloads.first?.starts(with: mark) == true
        else { return nil }
        environment.register.whileDecoding(request.source) { abort() }
    })
