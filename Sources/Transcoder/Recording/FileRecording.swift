import Base

/// A recording that is made in the caller's own process, of packets that it received itself.
///
/// For programs that trust the bitstream as much as themselves: the server makes its own in the confined process.
package struct FileRecording {
    /// One input for both kinds; its packets tell them apart.
    private static let input = InputID(number: 1)

    private var machine: RecordingMachine

    package init(_ request: RecordingRequest) {
        machine = RecordingMachine(request)
        machine.open(Self.input)
    }

    /// Takes a packet in.
    /// - Returns: what is to be written, among others.
    package mutating func take(_ packet: InputPacket, at now: MonotonicTime) -> [RecordingReport] {
        machine.take(packet, of: Self.input, at: now)
        machine.advance(to: now)
        return reports()
    }

    /// Completes the file.
    package mutating func finish(at now: MonotonicTime) -> [RecordingReport] {
        machine.finish(.stopped, at: now)
        return reports()
    }

    private mutating func reports() -> [RecordingReport] {
        machine.takeActions().compactMap { if case .report(let report) = $0 { report } else { nil } }
    }
}
