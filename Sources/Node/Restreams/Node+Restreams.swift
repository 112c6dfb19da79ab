import Base
import Restream
import Stage

/// Restreams: the targets of streams' programmes, and the notification of hosts and webhooks.
extension Node {
    /// Starts the desk, and hands it the targets of all streams in memory.
    func beginRestreams() async {
        await restreams?.start { [weak self] stream, status, event in
            await self?.tell(status, event, of: stream)
        }
        for host in registry.all { await followRestreams(of: host.id) }
    }

    /// Updates the desk with a stream's programme and targets.
    func followRestreams(of stream: StreamID) async {
        guard let restreams, !isStopping, let host = registry[stream] else { return }
        let (record, list) = host.durableState
        await restreams.update(
            stream, to: list.targets, isLive: directory[stream]?.state == .live,
            createdAt: record?.createdAt, live.recordedProgramme(of: stream))
    }

    /// Adds a target to which a stream's programme is sent from now on.
    /// - Returns: the target's status, once it is durable.
    package func addRestream(
        to address: RestreamAddress, key: Secret<String>, of stream: StreamID
    ) async throws(RestreamRefusal) -> RestreamStatus {
        let (desk, host) = try await restreamPlace(of: stream)
        let target = try await host.addRestream(to: address, key: key)
        await followRestreams(of: stream)
        return await desk.status(of: target, in: stream)
    }

    /// The status of each of a stream's targets, in the order in which they were added.
    package func restreams(of stream: StreamID) async throws(RestreamRefusal) -> [RestreamStatus] {
        let (desk, host) = try await restreamPlace(of: stream)
        var statuses: [RestreamStatus] = []
        for target in host.durableState.restreams.targets {
            statuses.append(await desk.status(of: target, in: stream))
        }
        return statuses
    }

    /// Disconnects a target and deletes it with its key.
    package func removeRestream(_ number: Int, of stream: StreamID) async throws(RestreamRefusal) {
        let (_, host) = try await restreamPlace(of: stream)
        try await host.removeRestream(number)
        await followRestreams(of: stream)
    }

    /// The desk, and the host of a stream that is known.
    /// - Throws: `unavailable`, `stopping`, or the stage's refusal.
    private func restreamPlace(
        of stream: StreamID
    ) async throws(RestreamRefusal) -> (desk: RestreamDesk, host: StreamHost) {
        guard let restreams else { throw .unavailable }
        guard !isStopping else { throw .stopping }
        do throws(StageRefusal) {
            guard let host = try await knownHost(of: stream) else { throw .unknownStream }
            return (restreams, host)
        } catch {
            throw .stage(error)
        }
    }

    /// Notifies the stream's host of a target's status, and reports it to webhooks if it is an event for them.
    private func tell(_ status: RestreamStatus, _ event: String?, of stream: StreamID) async {
        guard let host = registry[stream] else { return }
        await host.tellRestream(status.json)
        if let event { await host.report(restream: status.json, as: event) }
    }
}
