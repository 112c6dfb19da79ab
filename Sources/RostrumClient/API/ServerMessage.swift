import Foundation

/// A message from the server on a socket or control channel for which this library has no type.
///
/// `/v1/asyncapi.json` on the server describes all of them.
public struct ServerMessage: Equatable, Sendable {
    /// Such as `slots`, `quality`, `interaction` or `refused`.
    public let type: String
    /// The whole message as JSON.
    public let data: Data

    /// - Throws: if the data is not JSON.
    init(parsing data: Data) throws(RostrumError) {
        let json = try JSONValue(parsing: data)
        self.init(json, data)
    }

    init(_ json: JSONValue, _ data: Data) {
        // Messages of LiveKit's clients use `message_type`.
        type = json["type"].string ?? json["message_type"].string ?? ""
        self.data = data
    }

    /// Decodes the message as a type of the app.
    public func decoded<Value: Decodable>(as type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: data)
    }
}
