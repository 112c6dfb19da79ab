import Base
import Interaction
import Stage
import Synchronization

/// What the stage hears of sessions, in the order in which the node decided it.
///
/// Several tasks decide about the sessions of a stream, and each may wait for a stage before it goes on. If each called
/// the stage itself, a session's end could come before its beginning, and the session would be present for ever.
extension StreamHost {
    /// Queues a notice without waiting; `takeNotices` follows.
    /// - Parameter client: the way to the session's client, for notices that are answered; nil if there is none.
    nonisolated func put(_ notice: StageNotice, answering client: ControlEnd?) {
        notices.withLock { $0.append((notice, client)) }
    }

    /// Handles all that is queued, in order, whoever has queued it.
    func takeNotices() {
        let queued = notices.withLock { notices in
            defer { notices = [] }
            return notices
        }
        for (notice, client) in queued { take(notice, answering: client) }
    }

    private func take(_ notice: StageNotice, answering client: ControlEnd?) {
        switch notice {
        case .connect(let sender, let id): connect(sender, by: .session(id))
        case .disconnect(let id): disconnect(.session(id))
        case .setSource(let source): setSource(source)
        case .weakUplink(let id): noteWeakUplink(of: .session(id))
        case .interact(let command, let sender, _):
            guard let client else { return }
            // Answered once the change is durable: other worker events must not wait for a disk.
            perform(command, from: sender) { result in
                switch result {
                case .success(let reply): client.tell(AudienceAnswer.text(reply, to: command))
                case .failure(let refusal): client.tell(AudienceAnswer.text(refusal, to: command))
                }
            }
        case .follow(let sender, let id):
            if let client { follow(as: sender, in: id, client) }
        case .refresh(let id): refresh(id)
        case .submit(let command, let sender, _):
            do throws(StageRefusal) {
                // Returns before the change is durable: other worker events must not wait for a disk.
                try submit(command, from: sender)
            } catch {
                client?.tell(String(decoding: ControlReply.refusal(error).bytes, as: UTF8.self))
            }
        }
    }
}

extension StageNotice {
    /// The session whose client is answered; nil if none is.
    var client: SessionID? {
        switch self {
        case .submit(_, _, let id), .interact(_, _, let id), .follow(_, let id): id
        case .connect, .disconnect, .setSource, .weakUplink, .refresh: nil
        }
    }
}
