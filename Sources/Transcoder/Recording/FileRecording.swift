import Base

/// A recording created in the caller's own process, from packets that it received.
///
/// For programs that trust the bitstream: the server creates its recordings in the confined process.
package struct FileRecording {
    /// One input for audio and video; the packets' codecs distinguish them.
    private static let input = InputID(number: 1)

    private var machine: RecordingMachine

    package init(_ request: RecordingRequest) {
        machine = RecordingMachine(request)
        machine.open(Self.input)
    }

    /// Processes a packet.
    /// - Returns: reports, including the bytes to write.
    package mutating func take(_ packet: InputPacket, at now: MonotonicTime) -> [RecordingReport] {
        machine.take(packet, of: Self.input, at: now)
        machine.advance(to: now)
        return reports()
    }

    /// Completes the file.
    /// - Returns: the last reports, including the bytes to write.
    package mutating func finish(at now: MonotonicTime) -> [RecordingReport] {
        machine.finish(.stopped, at: now)
        return reports()
    }

    private mutating func reports() -> [RecordingReport] {
        machine.takeActions().compactMap { if case .report(let report) = $0 { report } else { nil } }
    }
}
