import Base
import Foundation
import Net

// A viewer on one network after another.

extension Bench {
    /// How often the server is asked what it believes that the path takes.
    private static let asking = Duration.milliseconds(400)

    func network() async throws -> NetworkReport {
        let ticker = Task { await tick() }
        defer { ticker.cancel() }
        let publishers = options.network.isPublishing ? try await startPublishers() : []
        var report = NetworkReport(
            server: options.server.url.absoluteString,
            startedAt: ISO8601DateFormatter().string(from: Date()), layers: layers,
            feedback: options.network.feedback.rawValue)
        if !publishers.isEmpty { await pause(options.timing.warmUp) }
        for profile in options.network.profiles where !isInterrupted {
            do {
                try await watch(over: profile, into: &report)
            } catch {
                report.verdict.failures.append("\(profile.name): \(error)")
            }
        }
        await leave(publishers)
        progress.clear()
        return report
    }

    /// What the tool's own publisher sends.
    private var layers: [NetworkReport.Layer] {
        guard options.network.isPublishing, options.media.videoFile == nil else { return [] }
        var bitrate = options.media.bitrate
        return (0..<options.media.layers).map { layer in
            defer { bitrate /= 3 }
            return NetworkReport.Layer(height: 720 >> layer, bitrate: bitrate)
        }
    }

    private func watch(over profile: NetworkProfile, into report: inout NetworkReport) async throws {
        let ticket = try await entrance.ticket(.viewer, stream: options.target.stream)
        let recorder = NetworkRecorder(profile, at: MonotonicClock.now())
        guard let viewer = await entrance.watch(ticket, over: profile, into: recorder) else {
            throw RunFailure(description: log.reason ?? "the viewer did not join")
        }
        let seconds = min(profile.seconds, options.timing.duration)
        progress.step("\(profile.name): \(Format.short(seconds)) s, \(profile.summary)")
        let asker = Task { await askForEstimates(of: viewer, for: recorder) }
        await pause(seconds)
        asker.cancel()
        let end = Double(MonotonicClock.now().nanoseconds(since: recorder.began)) / 1e9
        await entrance.leave(viewer)
        await asker.value
        let record = recorder.all
        report.add(record, of: profile, began: recorder.began, end: end)
        if record.frames.isEmpty {
            report.verdict.failures.append(
                "\(profile.name): no picture came: \(log.reason ?? "none was sent")")
        }
    }

    /// Rostrum tells it at the session's URL; of other servers nothing is known.
    private func askForEstimates(of viewer: Participant, for recorder: NetworkRecorder) async {
        struct Quality: Decodable {
            var estimate: Int?
        }
        guard let url = viewer.session?.appendingPathComponent("quality") else { return }
        while !Task.isCancelled {
            guard let text = try? await entrance.get(url, token: viewer.token),
                let quality = try? JSONDecoder().decode(Quality.self, from: Data(text.utf8))
            else { return }
            recorder.setEstimate(quality.estimate)
            try? await Task.sleep(for: Self.asking)
        }
    }
}
