import Base
import HTTP
import Node
import Stage

/// One request at a route: what is asked, of what, and by whom.
struct Call: Sendable {
    let request: HTTPRequest
    /// What the path says, by the names in the route's pattern.
    let parameters: [String: String]
    /// What whoever asks may do.
    let access: Access
    /// The route's `operationId`.
    let operation: String
    /// What JSON bodies may hold.
    let members: RequestMembers

    /// The stream in the path; a name that cannot be a stream's names nothing.
    var stream: StreamID {
        get throws(Problem) {
            guard let stream = parameters["stream"].flatMap({ StreamID($0) }) else {
                throw Problem(404, nil, "A stream's name is 1 to 64 of A-Z a-z 0-9 _ -.")
            }
            return stream
        }
    }

    /// The participant in the query or in the path, where doubled slashes and segments of dots get lost.
    var participant: ParticipantID {
        get throws(Problem) {
            let text = request.query("participant") ?? parameters["participant"]
            guard let id = text.flatMap({ ParticipantID($0) }) else {
                throw StageRefusal.rejected(.unknownParticipant).problem
            }
            return id
        }
    }

    /// Somebody by name, and the stream in which they want to do something.
    func sender() throws(Problem) -> (stream: StreamID, token: Token, sender: Stage.Sender) {
        let stream = try self.stream
        let token = try access.requireParticipant(of: stream)
        guard let sender = token.sender(in: stream) else { throw Access.otherStream }
        return (stream, token, sender)
    }

    /// - Throws: what is wrong with a member that this route does not know.
    func check(_ members: [String: JSON]) throws(Problem) {
        try self.members.check(members, of: operation)
    }

    /// The request's JSON object.
    /// - Parameter isOptional: whether no body means an empty object.
    func body(isOptional: Bool = false) throws(Problem) -> JSONBody {
        try JSONBody(request, isOptional: isOptional) { members throws(Problem) in try check(members) }
    }
}
