import Base

/// Which way a viewer swipes through the list.
package enum FeedDirection: String, Equatable, Sendable, CaseIterable {
    case forward, backward

    var opposite: FeedDirection { self == .forward ? .backward : .forward }
}

/// One of a feed session's two pairs of receiving m-lines, audio and video.
package enum FeedSlot: Int, Equatable, Sendable, CaseIterable {
    case first, second

    /// The slot of the neighbour, if the focus is in this one.
    package var other: FeedSlot { self == .first ? .second : .first }
}

/// The part of a stream that a slot carries.
package enum FeedQuality: String, Equatable, Sendable {
    /// The lowest layer, without audio.
    case preview
    /// The best layer, with audio.
    case full
}

/// A message from a viewer's client; on the control channel, one JSON object.
///
/// ```
/// {"type":"peek","stream":"s4","direction":"forward"}    direction may be left out
/// {"type":"focus","stream":"s4","ahead":"s5"}            ahead may be left out
/// {"type":"release","stream":"s4"}                       stream may be left out
/// ```
/// A message may also carry a number, `"request":7`, which the client counts up. A client that sends numbers receives
/// at least one `slots` or `refused` notice for each request, except that of consecutive messages beyond the rate
/// limit only the first is refused. Each `slots` notice names the latest request that it reflects.
package enum FeedMessage: Equatable, Sendable {
    /// The message's `type` in JSON, and the last path component over HTTP.
    package enum Kind: String, Equatable, Sendable, CaseIterable {
        case peek, focus, release
    }

    /// A swipe towards a stream began.
    case peek(StreamID, direction: FeedDirection?)
    /// The viewer is on a stream now.
    ///
    /// `ahead` is the stream that the client will show next in the same direction. It may differ from what the server
    /// would choose, because the client shows the order that it read earlier.
    case focus(StreamID, ahead: StreamID?)
    /// The swipe was called off; if a stream is given, only if that one is the neighbour.
    case release(StreamID?)

    /// The message's type without its data, for counters and refusals.
    package var kind: Kind {
        switch self {
        case .peek: .peek
        case .focus: .focus
        case .release: .release
        }
    }

    /// The stream that the message names; nil for a release of whichever stream is the neighbour.
    package var stream: StreamID? {
        switch self {
        case .peek(let stream, _), .focus(let stream, _): stream
        case .release(let stream): stream
        }
    }
}

/// Why a message was refused; a refused message changes nothing.
package enum FeedRefusal: String, Error, Equatable, Sendable {
    /// No such stream is live.
    case notLive = "not-live"
    /// The viewer may not see it.
    case notPermitted = "not-permitted"
    /// No stream is in focus, so there is nothing to swipe away from.
    case noFocus = "no-focus"
    /// A newer session of the same viewer has the second stream.
    case heldElsewhere = "held-elsewhere"
    /// The client exceeded its message rate, see `FeedSession.Configuration`, or too much of what its viewer asked for
    /// waits to be performed.
    case tooManyMessages = "too-many-messages"
    /// The session does not exist, or has ended.
    case noSession = "no-session"
    /// The audience has reached its session limit.
    case full = "full"
}

/// A message to a viewer's client; on the control channel, one JSON object.
///
/// ```
/// {"type":"slots","slots":[{"slot":0,"stream":"s3","quality":"full"},{"slot":1,"stream":null}]}
/// {"type":"moved","from":"s3","to":"s4","reason":"ended"}      reason: ended | not-permitted
/// {"type":"empty"}
/// {"type":"refused","message":"peek","stream":"s9","reason":"not-live"}
/// {"type":"replaced"}
/// ```
/// `slots` and `refused` carry a `request` if the client numbers its requests.
///
/// The encoder of `slots` adds each slot's `mid`s.
package enum FeedNotice: Equatable, Sendable {
    /// Why the focus was lost.
    package enum Loss: String, Equatable, Sendable {
        case ended
        case notPermitted = "not-permitted"
    }

    /// The stream in one slot.
    package struct SlotState: Equatable, Sendable {
        /// The raw value is the number in the JSON.
        package let slot: FeedSlot
        /// Never missing: an empty slot has no `SlotState`.
        package let stream: StreamID
        /// `full` for the focus, `preview` for the neighbour.
        package let quality: FeedQuality

        package init(slot: FeedSlot, stream: StreamID, quality: FeedQuality) {
            self.slot = slot
            self.stream = stream
            self.quality = quality
        }
    }

    /// The slots that carry a stream; sent after every change.
    ///
    /// `request` is the highest request number that these slots reflect; nil if no request had a number. A client
    /// that has sent a later request since then recognizes the notice as outdated.
    case slots([SlotState], request: UInt32? = nil)
    /// The stream's video in a slot begins with this RTP timestamp; earlier packets belong to another stream.
    case begun(FeedSlot, StreamID, timestamp: UInt32)
    /// The stream in focus was lost, and another one is in focus now.
    case moved(from: StreamID, to: StreamID, FeedNotice.Loss)
    /// No stream that the viewer may see is live; the next one that is will become the focus.
    case empty
    /// A message was refused; `request` is its number, if it had one.
    case refused(FeedMessage.Kind, StreamID?, FeedRefusal, request: UInt32? = nil)
    /// A newer session of the same viewer has taken over; this one has ended.
    case replaced
}

/// An action that a session requires; effects must be performed in the order in which they are returned.
package enum FeedEffect: Equatable, Sendable {
    /// Attach a stream to a slot, which is empty before.
    case attach(FeedSlot, StreamID, FeedQuality)
    /// Switch a slot from preview to full quality; the stream stays the same.
    case promote(FeedSlot, StreamID)
    /// Detach the stream from the slot.
    case release(FeedSlot, StreamID)
    /// Send a notice to the session's client.
    case tell(FeedNotice)
    /// Close the session, which has released its streams and left the audience, after its client has been notified.
    case close
}
