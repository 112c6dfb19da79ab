import Base
import Forwarding
import HLS
import Recordings
import Restream
import TestSupport
import Testing

@testable import Node
@testable import Transcoder

/// A target in a network to which nothing may be sent, so that each attempt fails at once and no packet leaves.
@Suite(.timeLimit(.minutes(10))) struct `A desk of restreams` {
    /// What followers and webhooks are notified of.
    private struct Notice: Sendable {
        let status: RestreamStatus
        let event: String?

        var isFailure: Bool {
            if case .failed = status.state { true } else { false }
        }
    }

    private let show: StreamID
    private let target: RestreamTarget
    private let programme: RecordingDesk.Programme
    private let clock = Watched(MonotonicTime.zero + .seconds(1_000))
    private let notices = Watched<[Notice]>([])
    private let transcoder: TranscoderSupervisor
    private let packagings: PackagingDesk

    init() throws {
        show = try #require(StreamID("show"))
        target = RestreamTarget(
            number: 1, address: try RestreamAddress("rtmp://127.0.0.1:1935/app"), key: Secret("key"))
        programme = RecordingDesk.Programme(
            video: nil, audio: ProgrammeSource(session: nil, mid: "0", worker: 0))
        var settings = TranscoderSettings()
        settings.executable = "/nonexistent"
        transcoder = TranscoderSupervisor(settings, log: .silent)
        packagings = PackagingDesk(
            limit: 1, timing: .usual, transcoder: transcoder, taps: NoTaps(), log: .silent,
            now: Self.now(by: clock))
    }

    private static func now(by clock: Watched<MonotonicTime>) -> @Sendable () -> Moment {
        { Moment(elapsed: clock.value, wall: WallTime(milliseconds: 1_000_000)) }
    }

    /// - Parameter limit: how many targets there may be.
    private func makeDesk(limit: Int = 1) async -> RestreamDesk {
        let desk = RestreamDesk(
            RestreamSettings(limit: limit), packagings: packagings, log: .silent, now: Self.now(by: clock))
        await desk.start { [notices] _, status, event in
            notices.change { $0.append(Notice(status: status, event: event)) }
        }
        return desk
    }

    private func end(_ desk: RestreamDesk) async {
        await desk.stop()
        await packagings.stop()
        transcoder.stop()
    }

    /// Longer than any wait between two attempts.
    private func passTime() { clock.change { $0 = $0 + .seconds(3_600) } }

    private func failures(_ count: Int) async throws {
        try await notices.wait { $0.count { $0.isFailure } == count }
    }

    @Test func `take this machine's public address for a private one`() throws {
        let own = try #require(IPAddress("8.8.4.4"))
        let other = try #require(IPAddress("8.8.8.8"))
        let settings = RestreamSettings(limit: 1)
        #expect(settings.permits(other, own: [own]))
        #expect(!settings.permits(own, own: [own]))
        #expect(!settings.permits(.loopback, own: []))
        #expect(RestreamSettings(limit: 1, toPrivateNetworks: true).permits(own, own: [own]))
    }

    @Test func `try a target again once its time has come`() async throws {
        let desk = await makeDesk()
        await desk.update(show, to: [target], isLive: true, programme)
        try await failures(1)
        await desk.advance(ended: { _ in false })
        #expect(await desk.counters.attempts == 1)
        passTime()
        await desk.advance(ended: { _ in false })
        #expect(await desk.counters.attempts == 2)
        try await failures(2)
        await end(desk)
    }

    /// An encode that begins without a programme has no picture to show.
    @Test func `do not try a target again while the programme is interrupted`() async throws {
        let desk = await makeDesk()
        await desk.update(show, to: [target], isLive: true, programme)
        try await failures(1)
        await desk.update(show, to: [target], isLive: true, nil)
        passTime()
        await desk.advance(ended: { _ in false })
        #expect(await desk.counters.attempts == 1)
        await desk.update(show, to: [target], isLive: true, programme)
        await desk.advance(ended: { _ in false })
        #expect(await desk.counters.attempts == 2)
        try await failures(2)
        await end(desk)
    }

    @Test func `tell webhooks of a failure once, and followers of each`() async throws {
        let desk = await makeDesk()
        await desk.update(show, to: [target], isLive: true, programme)
        try await failures(1)
        passTime()
        await desk.advance(ended: { _ in false })
        try await failures(2)
        let told = notices.value
        #expect(told.map(\.status.state.name) == ["connecting", "failed", "connecting", "failed"])
        #expect(told.map(\.event) == [nil, "restream.failed", nil, nil])
        guard case .failed(let failure, let nextTry) = try #require(told.last).status.state else { return }
        #expect(failure == .forbidden)
        #expect(nextTry > WallTime(milliseconds: 1_000_000))
        #expect(await desk.counters.failures == 2)
        #expect(await desk.counters.failed == 1)
        await end(desk)
    }

    @Test func `connect to nothing before the stream is live and has a programme`() async throws {
        let desk = await makeDesk()
        await desk.update(show, to: [target], isLive: false, programme)
        await desk.update(show, to: [target], isLive: true, nil)
        #expect(await desk.counters.attempts == 0)
        #expect(await desk.status(of: target, in: show).state == .waiting)
        #expect(notices.value.isEmpty)
        await end(desk)
    }

    @Test func `have a target wait again once the stream is not live any more`() async throws {
        let desk = await makeDesk()
        await desk.update(show, to: [target], isLive: true, programme)
        try await failures(1)
        await desk.update(show, to: [target], isLive: false, nil)
        #expect(await desk.status(of: target, in: show).state == .waiting)
        passTime()
        await desk.advance(ended: { _ in false })
        #expect(await desk.counters.attempts == 1)
        await end(desk)
    }

    @Test func `forget the targets of a stream that has ended`() async throws {
        let desk = await makeDesk()
        await desk.update(show, to: [target], isLive: true, programme)
        try await failures(1)
        passTime()
        await desk.advance(ended: { _ in true })
        #expect(await desk.counters == RestreamDesk.Counters(attempts: 1, failures: 1))
        #expect(await desk.status(of: target, in: show).state == .waiting)
        await end(desk)
    }

    /// Where a stream begins again under its name, its targets are numbered from 1 again.
    @Test func `take a target with the number of an earlier one for another`() async throws {
        let desk = await makeDesk()
        await desk.update(show, to: [target], isLive: true, programme)
        try await failures(1)
        let address = try RestreamAddress("rtmp://127.0.0.1:1936/app")
        for next in [
            RestreamTarget(number: 1, address: address, key: Secret("key")),
            RestreamTarget(number: 1, address: address, key: Secret("other key")),
        ] {
            #expect(await desk.status(of: next, in: show).state == .waiting)
            let attempts = await desk.counters.attempts
            await desk.update(show, to: [next], isLive: true, programme)
            #expect(await desk.counters.attempts == attempts + 1, "it does not wait for the other's next try")
            try await failures(Int(attempts) + 1)
            #expect(await desk.status(of: next, in: show).address == address)
        }
        #expect(await desk.status(of: target, in: show).state == .waiting)
        let failure = "restream.failed"
        #expect(notices.value.map(\.event) == [nil, failure, nil, failure, nil, failure])
        await end(desk)
    }

    /// The desk may hear of the end of a stream only once it has begun again, with the same address and key.
    @Test func `take the same target of a stream that has begun again for another`() async throws {
        let desk = await makeDesk()
        for (begin, count) in [(Int64(1), 1), (2, 2)] {
            await desk.update(
                show, to: [target], isLive: true, createdAt: WallTime(milliseconds: begin), programme)
            #expect(await Int(desk.counters.attempts) == count, "it does not wait for the other's next try")
            try await failures(count)
        }
        #expect(notices.value.map(\.event) == [nil, "restream.failed", nil, "restream.failed"])
        await end(desk)
    }

    @Test func `tell webhooks of the next failure of a target that has waited meanwhile`() async throws {
        let desk = await makeDesk()
        await desk.update(show, to: [target], isLive: true, programme)
        try await failures(1)
        await desk.update(show, to: [target], isLive: false, nil)
        await desk.update(show, to: [target], isLive: true, programme)
        try await failures(2)
        let told = notices.value.filter { $0.isFailure }.map(\.event)
        #expect(told == ["restream.failed", "restream.failed"])
        await end(desk)
    }

    /// Each target that is connected is told of, which takes as long as the stream's host is busy.
    @Test(arguments: [false, true])
    func `connect no further target of a stream that has stopped meanwhile`(isRetry: Bool) async throws {
        let other = RestreamTarget(number: 2, address: target.address, key: Secret("other"))
        let targets = [target, other]
        let desk = RestreamDesk(
            RestreamSettings(limit: 2), packagings: packagings, log: .silent, now: Self.now(by: clock))
        let hearing = Watched((isSlow: !isRetry, begins: false, failures: 0))
        await desk.start { _, status, _ in
            guard status.state == .connecting else {
                if case .failed = status.state { hearing.change { $0.failures += 1 } }
                return
            }
            hearing.change { $0.begins = $0.isSlow }
            try? await hearing.wait { !$0.isSlow }
        }
        if isRetry {
            await desk.update(show, to: targets, isLive: true, programme)
            try await hearing.wait { $0.failures == 2 }
            hearing.change { $0.isSlow = true }
            passTime()
        }
        let attempts = await desk.counters.attempts
        let connecting = Task { [show, programme] in
            if isRetry {
                await desk.advance(ended: { _ in false })
            } else {
                await desk.update(show, to: targets, isLive: true, programme)
            }
        }
        try await hearing.wait { $0.begins }
        await desk.update(show, to: targets, isLive: false, nil)
        hearing.change { $0.isSlow = false }
        await connecting.value
        #expect(await desk.counters.attempts == attempts + 1)
        for target in targets { #expect(await desk.status(of: target, in: show).state == .waiting) }
        await end(desk)
    }

    /// As with targets that are connected: nothing would connect one that waits in a live stream.
    @Test func `have no further target wait once the stream is live again`() async throws {
        let other = RestreamTarget(number: 2, address: target.address, key: Secret("other"))
        let targets = [target, other]
        let desk = RestreamDesk(
            RestreamSettings(limit: 2), packagings: packagings, log: .silent, now: Self.now(by: clock))
        let hearing = Watched((isSlow: false, waits: false, failures: 0))
        await desk.start { _, status, _ in
            if case .failed = status.state { hearing.change { $0.failures += 1 } }
            guard status.state == .waiting else { return }
            hearing.change { $0.waits = true }
            try? await hearing.wait { !$0.isSlow }
        }
        await desk.update(show, to: targets, isLive: true, programme)
        try await hearing.wait { $0.failures == 2 }
        hearing.change { $0.isSlow = true }
        let stopping = Task { [show, programme] in
            await desk.update(show, to: targets, isLive: false, programme)
        }
        try await hearing.wait { $0.waits }
        await desk.update(show, to: targets, isLive: true, programme)
        try await hearing.wait { $0.failures == 3 }
        hearing.change { $0.isSlow = false }
        await stopping.value
        for target in targets {
            let state = await desk.status(of: target, in: show).state
            #expect(state != .waiting && state != .connecting, "it is tried again in time")
        }
        await end(desk)
    }

    /// Nobody starts the desk, so that it does not hear that the first target's connection has failed.
    @Test func `keep a target that is added while the last one is being removed`() async {
        let desk = RestreamDesk(
            RestreamSettings(limit: 2), packagings: packagings, log: .silent, now: Self.now(by: clock))
        await desk.update(show, to: [target], isLive: true, programme)
        let added = RestreamTarget(number: 2, address: target.address, key: Secret("other"))
        await desk.removeAll(of: show, andAdd: added, programme)
        #expect(await desk.status(of: added, in: show).state == .connecting)
        #expect(await desk.counters.attempts == 2)
        await end(desk)
    }

    @Test func `refuse targets beyond the limit, and look again ten seconds later`() async throws {
        let desk = await makeDesk(limit: 0)
        await desk.update(show, to: [target], isLive: true, programme)
        let refusal = RestreamStatus.State.failed(.full, nextTry: WallTime(milliseconds: 1_010_000))
        #expect(notices.value.map(\.status.state) == [refusal])
        #expect(notices.value.map(\.event) == ["restream.failed"])
        clock.change { $0 = $0 + .milliseconds(9_999) }
        await desk.advance(ended: { _ in false })
        #expect(notices.value.count == 1)
        clock.change { $0 = $0 + .milliseconds(1) }
        await desk.advance(ended: { _ in false })
        #expect(notices.value.map(\.status.state) == [refusal, refusal])
        // Webhooks are told of a failure, not of each attempt.
        #expect(notices.value.map(\.event) == ["restream.failed", nil])
        #expect(await desk.counters.attempts == 0)
        await end(desk)
    }
}

extension RestreamDesk {
    /// Removes a live stream's targets, and adds one before the removal is over.
    ///
    /// Both wait for this method to let go of the desk, in this order. The removal lets go of it in turn to have the
    /// samples of its connection ended, and comes back behind the addition.
    fileprivate func removeAll(
        of stream: StreamID, andAdd added: RestreamTarget, _ programme: RecordingDesk.Programme
    ) async {
        let removal = Task { await self.update(stream, to: [], isLive: true, programme) }
        let addition = Task { await self.update(stream, to: [added], isLive: true, programme) }
        await removal.value
        await addition.value
    }
}
