import Base
import StoryFeed

/// What `LiveStreams` is set up with.
struct LiveSettings {
    var workers = 1
    var limits = NodeLimits(
        sessions: 20_000, sessionsOfAddress: 500, compositions: 4, renditions: 1, conversions: 1)
    /// What counts how much in the feed's order.
    var feedWeights = FeedWeights()
    /// Whether there is something that decodes and encodes.
    var isProducing = false
    /// For how long viewers of a stream that has ended are kept.
    var returnTime = Duration.seconds(60)
}

extension LiveSettings {
    init(_ configuration: NodeConfiguration) {
        workers = configuration.workerCount
        limits = configuration.limits
        feedWeights = configuration.feedWeights
        isProducing = configuration.transcoder != nil
        returnTime = configuration.returnTime
    }
}
