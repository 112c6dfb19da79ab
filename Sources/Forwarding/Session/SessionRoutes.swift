/// The destinations of the SSRCs that a session receives.
///
/// Senders put MIDs and RIDs only into the first packets of an SSRC, so a route that is lost is not learned again. That
/// is why each layer has routes of its own, some for its media and some for its repair, and a new one takes the place
/// of the oldest of the same kind of the same layer: neither another kind nor another layer can push it out. What was
/// negotiated bounds the layers, and so the routes.
struct SessionRoutes {
    /// Routes for the repair of one layer: of the present SSRC, and of the one before it, whose last packets may still
    /// be on their way.
    static let repairLimit = 2

    /// The oldest first.
    private var routes: [Session.Route] = []

    /// Hot path: the route of a received SSRC; nil if it is not known.
    subscript(ssrc: UInt32) -> Session.Route? {
        for route in routes where route.ssrc == ssrc { return route }
        return nil
    }

    /// Adds the route of an SSRC that has none.
    mutating func add(_ route: Session.Route) {
        let rivals = routes.indices.filter { index in
            routes[index].layer === route.layer && routes[index].kind == route.kind
        }
        // A layer has one SSRC at a time.
        let limit = route.kind == .media ? 1 : Self.repairLimit
        if rivals.count >= limit, let oldest = rivals.first { routes.remove(at: oldest) }
        routes.append(route)
    }

    /// The SSRCs of media, without those of its repair.
    var media: [UInt32] { routes.filter { $0.kind == .media }.map(\.ssrc) }
}
