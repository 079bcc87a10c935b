/// The text of keys in key files; these keys are not secret.
enum KeyText {
    /// The key 0, 1, 2 … 31.
    static let counting = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    /// The key of 32 zeroes.
    static let zeroes = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
}
