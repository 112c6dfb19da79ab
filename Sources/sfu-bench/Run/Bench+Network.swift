import Base
import Foundation
import Net

// The `network` command: a viewer on one emulated network after another.

extension Bench {
    /// Between two requests for the server's bandwidth estimate.
    private static let asking = Duration.milliseconds(400)

    /// Watches over each profile in turn with a new viewer; a profile that fails does not end the run.
    func network() async throws -> Report {
        let publishers = options.network.isPublishing ? try await startPublishers() : []
        var report = emptyReport()
        var found = NetworkReport(layers: layers, feedback: options.network.feedback.rawValue)
        report.clients.publishers = publishers.count
        if !publishers.isEmpty { await pause(options.timing.warmUp) }
        for profile in options.network.profiles where !isInterrupted {
            report.clients.viewers += 1
            do {
                try await watch(over: profile, into: &found, &report.verdict)
            } catch {
                report.clients.failed += 1
                report.verdict.failures.append("\(profile.name): \(error)")
            }
        }
        await leave(publishers)
        report.clients.joined = found.runs.count
        report.clients.gotFirstFrame = found.runs.count { $0.firstPicture != nil }
        report.network = found
        return report
    }

    /// The layers that the tool's own publisher sends, as `VideoSource` makes them; empty if they are unknown.
    private var layers: [NetworkReport.Layer] {
        guard options.network.isPublishing, options.media.videoFile == nil else { return [] }
        var bitrate = options.media.bitrate
        return (0..<options.media.layers).map { layer in
            defer { bitrate /= 3 }
            return NetworkReport.Layer(height: 720 >> layer, bitrate: bitrate)
        }
    }

    /// Watches over one profile until its end, and adds what the viewer recorded to the report.
    /// - Throws: if the viewer cannot join.
    private func watch(
        over profile: NetworkProfile, into report: inout NetworkReport, _ verdict: inout Report.Verdict
    ) async throws {
        let ticket = try await entrance.ticket(.viewer, stream: options.target.stream)
        let recorder = NetworkRecorder(profile, at: MonotonicClock.now())
        guard let viewer = await entrance.watch(ticket, over: profile, into: recorder) else {
            throw RunFailure(description: log.reason ?? "the viewer did not join")
        }
        // The time limit of the run also applies to a longer profile.
        let seconds = min(profile.seconds, options.timing.duration)
        progress.step("\(profile.name): \(Format.short(seconds)) s, \(profile.summary)")
        let asker = Task { await askForEstimates(of: viewer, for: recorder) }
        await pause(seconds)
        asker.cancel()
        let end = Double(MonotonicClock.now().nanoseconds(since: recorder.began)) / 1e9
        await entrance.leave(viewer)
        await asker.value
        let record = recorder.all
        if let reason = report.add(record, of: profile, began: recorder.began, end: end) {
            verdict.isVoid = true
            verdict.reasons.append(reason)
        }
        if record.frames.isEmpty {
            verdict.failures.append(
                "\(profile.name): no picture arrived: \(log.reason ?? "none was sent")")
        }
    }

    /// Polls the server's bandwidth estimate for the viewer, which Rostrum offers below the session's URL.
    ///
    /// Stops at the first failure: other servers offer no estimate.
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
