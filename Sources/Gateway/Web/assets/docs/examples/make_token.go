// Creates a token with only the standard library.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

type claims struct {
	Issuer       string   `json:"iss"`
	Subject      string   `json:"sub"`
	Name         string   `json:"name,omitempty"`
	Role         string   `json:"role"`
	Stream       string   `json:"stream"`
	Expires      int64    `json:"exp"`
	Capabilities []string `json:"capabilities,omitempty"`
}

func makeToken(c claims, lifetime time.Duration) (string, error) {
	c.Issuer = os.Getenv("ROSTRUM_KEY_ID")
	c.Expires = time.Now().Add(lifetime).Unix()
	body, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(body)
	code := hmac.New(sha256.New, []byte(os.Getenv("ROSTRUM_SECRET")))
	code.Write([]byte(signed))
	return signed + "." + encode(code.Sum(nil)), nil
}

func main() {
	token, err := makeToken(claims{Subject: "ann", Name: "Ann", Role: "host", Stream: "talk"}, time.Hour)
	if err != nil {
		panic(err)
	}
	fmt.Println(token)
}
