import Base

/// What a run of `sfu-bench network` found out.
struct NetworkReport: Codable, Equatable, Sendable {
    /// One profile.
    struct Run: Codable, Equatable, Sendable {
        var profile: String
        var summary: String
        var seconds: Double
        /// From the request to the first picture, in milliseconds; nil without any.
        var firstPicture: Double?
        /// Shares, 0 to 1: of the time with the best picture that the link took, and of the time that the picture
        /// stood, in gaps of more than a fifth of a second from the first one on; of packets of sound that did not
        /// come; and of the link's capacity that was used, as far as the publisher sends so much.
        ///
        /// The first is nil where layers are not known: of somebody else's stream.
        var best: Double?
        var frozen: Double
        var soundLost: Double
        var use: Double
        /// How often the picture's size changed.
        var changes: Int
        /// Milliseconds that packets waited before the link, the longest of each sample.
        var queue: Quantiles?
        /// Packets that found the queue full.
        var overflowed: Int
        var samples: [NetworkRecorder.Sample]
    }

    /// One size that the publisher sends.
    struct Layer: Codable, Equatable, Sendable {
        var height: Int
        /// Bits a second.
        var bitrate: Int

        /// Of sound, headers and key frames that are larger than others.
        fileprivate var needed: Int { (bitrate * 105 / 100 + 46_000) * 11 / 10 }
    }

    /// The best first; empty where somebody else publishes.
    var layers: [Layer]
    /// How viewers tell what comes.
    var feedback: String
    var runs: [Run] = []

    /// Packets that the tool read later than this, in milliseconds, void what is said of delays.
    private static let latest = 20.0
    /// Seconds; a picture that follows later was frozen before.
    private static let gap = 0.2

    /// - Returns: why the run says nothing; nil if it does.
    mutating func add(
        _ record: NetworkRecorder.Record, of profile: NetworkProfile, began: MonotonicTime, end: Double
    ) -> String? {
        let samples = record.samples.filter { $0.seconds <= end + 0.5 }
        let frames = record.frames.map { Double($0.nanoseconds(since: began)) / 1e9 }
        let waits = samples.map { $0.delay - profile.roundTrip }
        runs.append(
            Run(
                profile: profile.name, summary: profile.summary, seconds: end,
                firstPicture: frames.first.map { $0 * 1_000 },
                best: layers.isEmpty
                    ? nil : share(of: samples) { $0.height == best(at: $0.capacity)?.height },
                frozen: Self.frozen(frames, until: end), soundLost: Self.soundLost(record),
                use: use(of: samples),
                changes: zip(samples, samples.dropFirst()).filter { $0.height != $1.height }.count,
                queue: Quantiles(waits), overflowed: samples.map(\.overflowed).reduce(0, +), samples: samples)
        )
        let late = record.lateness.filter { $0 > Self.latest }.count
        guard late > max(record.lateness.count / 20, 1) else { return nil }
        return "\(profile.name): in \(late) of \(record.lateness.count) samples packets were read more than "
            + "\(Int(Self.latest)) ms late: this machine is too busy"
    }

    /// What fits into a capacity, with sound.
    private func best(at capacity: Int) -> Layer? { layers.first { $0.needed <= capacity } }

    private func share(
        of samples: [NetworkRecorder.Sample], _ isCounted: (NetworkRecorder.Sample) -> Bool
    ) -> Double {
        samples.isEmpty ? 0 : Double(samples.filter(isCounted).count) / Double(samples.count)
    }

    private func use(of samples: [NetworkRecorder.Sample]) -> Double {
        let most = layers.first.map { $0.bitrate * 105 / 100 + 46_000 } ?? .max
        let capacity = samples.reduce(0) { $0 + min($1.capacity, most) }
        let delivered = samples.reduce(0) { $0 + min($1.delivered, $1.capacity) }
        return capacity > 0 ? min(Double(delivered) / Double(capacity), 1) : 0
    }

    private static func frozen(_ frames: [Double], until end: Double) -> Double {
        guard let first = frames.first, end > first else { return end > 0 ? 1 : 0 }
        let gaps = zip(frames, frames.dropFirst() + [end]).map { $1 - $0 }.filter { $0 > gap }
        return min(gaps.reduce(0, +) / (end - first), 1)
    }

    private static func soundLost(_ record: NetworkRecorder.Record) -> Double {
        guard record.soundExpected > 0 else { return 0 }
        return max(1 - Double(record.soundPackets) / Double(record.soundExpected), 0)
    }

    // MARK: Writing

    /// A table for the terminal.
    var lines: [String] {
        let names = layers.map { "\($0.height)p \(Format.short(Double($0.bitrate) / 1e6)) Mbit/s" }
        var lines = [(names + ["feedback by \(feedback)"]).joined(separator: ", ")]
        lines.append(
            "profile".padded(to: 14) + "   first    best  frozen   sound  use  changes  queue ms    dropped")
        lines.append("".padded(to: 14) + " picture   layer            lost                p50, p95")
        return lines + runs.map(Self.row)
    }

    static func cells(_ run: Run) -> [String] {
        func percent(_ share: Double) -> String { Format.fixed(share * 100, 1) + " %" }
        return [
            run.firstPicture.map { Format.fixed($0, 0) + " ms" } ?? "none",
            run.best.map(percent) ?? "-", percent(run.frozen), percent(run.soundLost),
            Format.fixed(run.use * 100, 0) + " %", "\(run.changes)",
            run.queue.map { Format.fixed($0.p50, 0) + ", " + Format.fixed($0.p95, 0) } ?? "-",
            "\(run.overflowed)",
        ]
    }

    private static func row(_ run: Run) -> String {
        let widths = [8, 8, 8, 8, 5, 9, 10, 11]
        let cells = zip(cells(run), widths).map { text, width in
            String(repeating: " ", count: max(width - text.count, 1)) + text
        }
        return run.profile.padded(to: 14) + cells.joined()
    }
}
