/// A connection's `struct lws`, valid from its adoption until `LWS_CALLBACK_WSI_DESTROY`.
///
/// Serves as a key in tables, which compare the address and never dereference it. Only calls of libwebsockets do; it
/// announces the end of a connection before it frees it, and the tables drop the key then.
@safe struct LibraryConnection: Hashable {
    let pointer: OpaquePointer

    static func == (left: LibraryConnection, right: LibraryConnection) -> Bool {
        unsafe left.pointer == right.pointer
    }

    func hash(into hasher: inout Hasher) { unsafe hasher.combine(pointer) }
}
