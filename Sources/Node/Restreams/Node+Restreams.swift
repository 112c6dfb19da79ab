import Base
import Restream
import Stage

/// Restreams: to which targets streams' programmes go, and who hears how they do.
extension Node {
    func beginRestreams() async {
        await restreams?.start { [weak self] stream, status, event in
            await self?.tell(status, event, of: stream)
        }
        for host in registry.all { await followRestreams(of: host.id) }
    }

    /// Tells the desk what viewers get of a stream now, and where it goes.
    func followRestreams(of stream: StreamID) async {
        guard let restreams, !isStopping, let host = registry[stream] else { return }
        await restreams.update(
            stream, to: host.durableRestreams.targets, isLive: directory[stream]?.state == .live,
            live.recordedProgramme(of: stream))
    }

    /// Has a stream's programme sent to a target, too, from now on.
    /// - Returns: it, once it is durable.
    package func addRestream(
        to address: RestreamAddress, key: Secret<String>, of stream: StreamID
    ) async throws(RestreamRefusal) -> RestreamStatus {
        let (desk, host) = try await restreamPlace(of: stream)
        let target = try await host.addRestream(to: address, key: key)
        await followRestreams(of: stream)
        return await desk.status(of: target, in: stream)
    }

    /// A stream's targets, in the order in which they were added.
    package func restreams(of stream: StreamID) async throws(RestreamRefusal) -> [RestreamStatus] {
        let (desk, host) = try await restreamPlace(of: stream)
        var statuses: [RestreamStatus] = []
        for target in host.durableRestreams.targets {
            statuses.append(await desk.status(of: target, in: stream))
        }
        return statuses
    }

    /// Sends nothing to a target any more, and forgets its key.
    package func removeRestream(_ number: Int, of stream: StreamID) async throws(RestreamRefusal) {
        let (_, host) = try await restreamPlace(of: stream)
        try await host.removeRestream(number)
        await followRestreams(of: stream)
    }

    private func restreamPlace(
        of stream: StreamID
    ) async throws(RestreamRefusal) -> (desk: RestreamDesk, host: StreamHost) {
        guard let restreams, !isStopping else { throw .unavailable }
        do throws(StageRefusal) {
            guard let host = try await knownHost(of: stream) else { throw .unknownStream }
            return (restreams, host)
        } catch {
            throw .stage(error)
        }
    }

    private func tell(_ status: RestreamStatus, _ event: String?, of stream: StreamID) async {
        guard let host = registry[stream] else { return }
        await host.tellRestream(status.json)
        if let event { await host.report(restream: status.json, as: event) }
    }
}
