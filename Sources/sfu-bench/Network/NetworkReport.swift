import Base

/// The results of a run of `sfu-bench network`.
struct NetworkReport: Codable, Equatable, Sendable {
    /// The results of watching over one profile.
    struct Run: Codable, Equatable, Sendable {
        var profile: String
        var summary: String
        var seconds: Double
        /// From joining to the first picture, in milliseconds; nil if none came.
        var firstPicture: Double?
        /// Share of the time, 0 to 1, with the best picture that the link could take.
        ///
        /// Nil if the layers are unknown, because the stream is published by another program.
        var best: Double?
        /// Share of the time since the first picture, 0 to 1, that the picture stood still.
        ///
        /// Gaps of more than a fifth of a second count.
        var frozen: Double
        /// Share of the sound's packets that did not arrive, 0 to 1.
        var soundLost: Double
        /// Share of the link's capacity that was used, 0 to 1; capacity beyond what the publisher sends does not count.
        var use: Double
        /// How often the size of the picture changed.
        var changes: Int
        /// Waits in the queue in milliseconds; the longest one of each sample counts.
        var queue: Quantiles?
        /// Packets dropped because the queue was full.
        var overflowed: Int
        var samples: [NetworkRecorder.Sample]
    }

    /// A size of the picture that the publisher sends.
    struct Layer: Codable, Equatable, Sendable {
        /// In pixels.
        var height: Int
        /// In bits a second.
        var bitrate: Int

        /// Capacity that the layer needs, in bits a second: with headers, sound, and a reserve for larger key frames.
        fileprivate var needed: Int { (bitrate * 105 / 100 + 46_000) * 11 / 10 }
    }

    /// The best one first; empty if another program publishes.
    var layers: [Layer]
    /// How viewers report what arrives.
    var feedback: String
    var runs: [Run] = []

    /// In milliseconds; packets that the tool reads later make the measured delays unreliable.
    private static let latest = 20.0
    /// In nanoseconds; a picture counts as frozen if the next one comes later.
    private static let gap: Int64 = 200_000_000

    /// Evaluates a viewer's record and adds the result.
    /// - Parameters:
    ///   - began: when the profile began.
    ///   - end: when the viewer left, in seconds from there.
    /// - Returns: why the result is not valid; nil if it is.
    mutating func add(
        _ record: NetworkRecorder.Record, of profile: NetworkProfile, began: MonotonicTime, end: Double
    ) -> String? {
        let samples = record.samples.filter { $0.seconds <= end + 0.5 }
        let frames = record.frames.map { $0.nanoseconds(since: began) }
        let waits = samples.map { $0.delay - profile.roundTrip }
        runs.append(
            Run(
                profile: profile.name, summary: profile.summary, seconds: end,
                firstPicture: frames.first.map { Double($0) / 1e6 },
                best: layers.isEmpty
                    ? nil : share(of: samples) { $0.height == best(at: $0.capacity)?.height },
                frozen: Self.frozen(frames, until: end), soundLost: Self.soundLost(record),
                use: use(of: samples),
                changes: zip(samples, samples.dropFirst()).filter { $0.height != $1.height }.count,
                queue: Quantiles(waits), overflowed: samples.map(\.overflowed).reduce(0, +), samples: samples)
        )
        // Some late samples are tolerated: one in twenty, but at least one.
        let late = record.lateness.filter { $0 > Self.latest }.count
        guard late > max(record.lateness.count / 20, 1) else { return nil }
        return "\(profile.name): in \(late) of \(record.lateness.count) samples, packets were read more than "
            + "\(Int(Self.latest)) ms late: this machine is too busy"
    }

    /// The best layer that fits into a capacity together with the sound; nil if none does.
    private func best(at capacity: Int) -> Layer? { layers.first { $0.needed <= capacity } }

    /// The share of samples that meet a condition; all samples are equally long.
    private func share(
        of samples: [NetworkRecorder.Sample], _ isCounted: (NetworkRecorder.Sample) -> Bool
    ) -> Double {
        samples.isEmpty ? 0 : Double(samples.filter(isCounted).count) / Double(samples.count)
    }

    /// Delivered bits as a share of what the link and the best layer allowed.
    private func use(of samples: [NetworkRecorder.Sample]) -> Double {
        let most = layers.first.map { $0.bitrate * 105 / 100 + 46_000 } ?? .max
        let capacity = samples.reduce(0) { $0 + min($1.capacity, most) }
        let delivered = samples.reduce(0) { $0 + min($1.delivered, $1.capacity) }
        return capacity > 0 ? min(Double(delivered) / Double(capacity), 1) : 0
    }

    /// The share of the time since the first frame that lies in gaps; everything if no frame came.
    ///
    /// In whole nanoseconds, so that five pictures a second, which come just in time, have no gaps.
    private static func frozen(_ frames: [Int64], until seconds: Double) -> Double {
        let end = Int64((seconds * 1e9).rounded())
        // What came after the end does not shorten the last gap, or lengthen it.
        let shown = frames.filter { $0 <= end }
        guard let first = shown.first, end > first else { return end > 0 ? 1 : 0 }
        let gaps = zip(shown, shown.dropFirst() + [end]).map { $1 - $0 }.filter { $0 > gap }
        return Double(gaps.reduce(0, +)) / Double(end - first)
    }

    /// 0 if the stream has no sound.
    private static func soundLost(_ record: NetworkRecorder.Record) -> Double {
        guard record.soundExpected > 0 else { return 0 }
        return max(1 - Double(record.soundPackets) / Double(record.soundExpected), 0)
    }

    // MARK: Writing

    /// Lines of a table for the terminal.
    var lines: [String] {
        let names = layers.map { "\($0.height)p \(Format.short(Double($0.bitrate) / 1e6)) Mbit/s" }
        var lines = [(names + ["feedback by \(feedback)"]).joined(separator: ", ")]
        lines.append(
            "profile".padded(to: 14) + "   first    best  frozen   sound  use  changes  queue ms    dropped")
        lines.append("".padded(to: 14) + " picture   layer            lost                p50, p95")
        return lines + runs.map(Self.row)
    }

    /// The values of a row after the profile's name, for the terminal and for HTML.
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
