import Base
import StoryFeed

/// The part of the node's configuration that `LiveStreams` needs.
struct LiveSettings {
    var workers = 1
    var limits = NodeLimits(
        sessions: 20_000, sessionsOfAddress: 500, compositions: 4, renditions: 1, conversions: 1)
    /// How much each criterion counts in the feed's order.
    var feedWeights = FeedWeights()
    /// Whether there is a transcoder.
    var isProducing = false
    /// How long viewers of an ended stream are kept.
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
