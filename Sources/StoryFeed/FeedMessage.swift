import Base

/// Which way a viewer swipes through the list.
package enum FeedDirection: String, Equatable, Sendable, CaseIterable {
    case forward, backward

    var opposite: FeedDirection { self == .forward ? .backward : .forward }
}

/// One of a feed session's two pairs of receiving m-lines, audio and video.
package enum FeedSlot: Int, Equatable, Sendable, CaseIterable {
    case first, second

    /// Where the neighbour is, if the focus is in this one.
    package var other: FeedSlot { self == .first ? .second : .first }
}

/// What a slot gets of a stream.
package enum FeedQuality: String, Equatable, Sendable {
    /// The lowest layer, no audio.
    case preview
    /// The best layer, with audio.
    case full
}

/// What a viewer's client says; on the control channel one JSON object each.
///
/// ```
/// {"type":"peek","stream":"s4","direction":"forward"}    direction may be left out
/// {"type":"focus","stream":"s4","ahead":"s5"}            ahead may be left out
/// {"type":"release","stream":"s4"}                       stream may be left out
/// ```
/// Beside these members a message may have a number, `"request":7`, counted up by the client. Who gives numbers is told
/// with the slots up to which request they are true, and of each request at least that.
package enum FeedMessage: Equatable, Sendable {
    /// As the message's `type`, and the last part of the path over HTTP.
    package enum Kind: String, Equatable, Sendable, CaseIterable {
        case peek, focus, release
    }

    /// A swipe towards a stream began.
    case peek(StreamID, direction: FeedDirection?)
    /// The viewer is on a stream now. `ahead` is what the client will show next in the same direction; it may differ
    /// from what the server would choose, because the client shows the order that it once read.
    case focus(StreamID, ahead: StreamID?)
    /// The swipe was called off; with a stream, only if that one is the neighbour.
    case release(StreamID?)

    /// For counting, and for refusals.
    package var kind: Kind {
        switch self {
        case .peek: .peek
        case .focus: .focus
        case .release: .release
        }
    }

    /// What it names; nil for a release of whatever the neighbour is.
    package var stream: StreamID? {
        switch self {
        case .peek(let stream, _), .focus(let stream, _): stream
        case .release(let stream): stream
        }
    }
}

/// Why a message was not followed; nothing changed.
package enum FeedRefusal: String, Error, Equatable, Sendable {
    /// No such stream is live.
    case notLive = "not-live"
    /// The viewer may not see it.
    case notPermitted = "not-permitted"
    /// No stream is in focus, so there is nothing to swipe away from.
    case noFocus = "no-focus"
    /// A newer session of the same viewer has the second stream.
    case heldElsewhere = "held-elsewhere"
    case tooManyMessages = "too-many-messages"
    /// The session is not, or not any more.
    case noSession = "no-session"
    /// The feed is full.
    case full = "full"
}

/// What a viewer's client is told; on the control channel one JSON object each.
///
/// ```
/// {"type":"slots","slots":[{"slot":0,"stream":"s3","quality":"full"},{"slot":1,"stream":null}]}
/// {"type":"moved","from":"s3","to":"s4","reason":"ended"}      reason: ended | not-permitted
/// {"type":"empty"}
/// {"type":"refused","message":"peek","stream":"s9","reason":"not-live"}
/// {"type":"replaced"}
/// ```
/// `slots` and `refused` have a `request` where the client numbers its own.
///
/// The one who encodes `slots` adds each slot's `mid`s.
package enum FeedNotice: Equatable, Sendable {
    /// Why the focus was lost.
    package enum Loss: String, Equatable, Sendable {
        case ended
        case notPermitted = "not-permitted"
    }

    /// What one slot carries.
    package struct SlotState: Equatable, Sendable {
        /// Its number on the wire is the raw value.
        package let slot: FeedSlot
        /// A slot without a stream is not listed.
        package let stream: StreamID
        /// Full in the focus only.
        package let quality: FeedQuality

        package init(slot: FeedSlot, stream: StreamID, quality: FeedQuality) {
            self.slot = slot
            self.stream = stream
            self.quality = quality
        }
    }

    /// The slots that carry something, as they are now; sent after every change.
    ///
    /// `request` is the highest number of a request that they are true after; nil if none had a number. A client that
    /// has asked for more since then knows by it that this is older news.
    case slots([SlotState], request: UInt32? = nil)
    /// The stream's picture in a slot begins with this RTP time stamp; what came before is another stream's.
    case begun(FeedSlot, StreamID, timestamp: UInt32)
    /// The stream in focus is gone, and the viewer is on another one.
    case moved(from: StreamID, to: StreamID, FeedNotice.Loss)
    /// No stream is live that the viewer may see; the next one will be in focus as soon as it is.
    case empty
    /// `request` is the number of what is refused, if it has one.
    case refused(FeedMessage.Kind, StreamID?, FeedRefusal, request: UInt32? = nil)
    /// A newer session of the same viewer has taken over; this one has ended.
    case replaced
}

/// What has to be done for a session, in this order.
package enum FeedEffect: Equatable, Sendable {
    /// The slot was empty; it carries this stream now.
    case attach(FeedSlot, StreamID, FeedQuality)
    /// Full quality from now on, for what the slot carries as a preview.
    case promote(FeedSlot, StreamID)
    /// The slot carries nothing any more.
    case release(FeedSlot, StreamID)
    case tell(FeedNotice)
    /// The session has lost its streams and its place; close it once it has been told.
    case close
}
