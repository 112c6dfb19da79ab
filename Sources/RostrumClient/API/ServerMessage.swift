import Foundation

/// One message of the server's on a socket or on a session's control channel, for what this library has no type of.
///
/// `/v1/asyncapi.json` on the server has all of them.
public struct ServerMessage: Equatable, Sendable {
    /// Such as `slots`, `quality`, `interaction` or `refused`.
    public let type: String
    /// The whole message, JSON.
    public let data: Data

    /// - Throws: for what is no JSON object with a type.
    init(parsing data: Data) throws(RostrumError) {
        let json = try JSONValue(parsing: data)
        self.init(json, data)
    }

    init(_ json: JSONValue, _ data: Data) {
        // That of LiveKit's clients has another name.
        type = json["type"].string ?? json["message_type"].string ?? ""
        self.data = data
    }

    /// Reads the message as a type of the app's own.
    public func decoded<Value: Decodable>(as type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: data)
    }
}
