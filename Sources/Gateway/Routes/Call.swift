import Base
import HTTP
import Node
import Stage

/// One request at its route: parameters, permissions and body.
struct Call: Sendable {
    let request: HTTPRequest
    /// Parameters of the path, by their names in the route's pattern.
    let parameters: [String: String]
    /// Authentication and authorization of the request.
    let access: Access
    /// The route's `operationId`.
    let operation: String
    /// The members that JSON bodies may have.
    let members: RequestMembers

    /// The stream in the path; 404 for a text that is no valid stream name.
    var stream: StreamID {
        get throws(Problem) {
            guard let stream = parameters["stream"].flatMap({ StreamID($0) }) else {
                throw Problem(404, nil, "A stream's name must be 1 to 64 of A-Z a-z 0-9 _ -.")
            }
            return stream
        }
    }

    /// The participant in the query or else in the path.
    ///
    /// An identity with `//`, `.` or `..` does not survive in a path, so clients may put it in the query.
    var participant: ParticipantID {
        get throws(Problem) {
            let text = request.query("participant") ?? parameters["participant"]
            guard let id = text.flatMap({ ParticipantID($0) }) else {
                throw StageRefusal.rejected(.unknownParticipant).problem
            }
            return id
        }
    }

    /// The stream in the path, and the sender, who must have an identity in it.
    func sender() throws(Problem) -> (stream: StreamID, token: Token, sender: Stage.Sender) {
        let stream = try self.stream
        let token = try access.requireParticipant(of: stream)
        guard let sender = token.sender(in: stream) else { throw Access.otherStream }
        return (stream, token, sender)
    }

    /// Checks the members of a JSON body against the OpenAPI document.
    /// - Throws: a 400 about the first unknown member.
    func check(_ members: [String: JSON]) throws(Problem) {
        try self.members.check(members, of: operation)
    }

    /// The request's body as a JSON object, with its members checked.
    /// - Parameter isOptional: whether a missing body counts as an empty object.
    func body(isOptional: Bool = false) throws(Problem) -> JSONBody {
        try JSONBody(request, isOptional: isOptional) { members throws(Problem) in try check(members) }
    }

    /// The same for a sender with an identity in the stream of the path; a stranger's body is never parsed.
    func participantBody(isOptional: Bool = false) throws(Problem) -> JSONBody {
        _ = try sender()
        return try body(isOptional: isOptional)
    }
}
