// A WHEP player on Pion: counts packets of both kinds and looks for gaps in what it receives.
//
//	GO111MODULE=off GOPATH=…:/usr/share/gocode go build (test_players.py does it)
//	./player http://127.0.0.1:8080/whep/demo PACKETS SECONDS [URL USERNAME PASSWORD]
//
// With a TURN server it takes no other way than over that.
// Prints what it got as JSON and ends with 0 once it has so many packets of each kind and a key frame;
// with 1 when the time is over first.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v3"
)

type received struct {
	sync.Mutex
	Codec     string `json:"codec"`
	Video     int    `json:"video"`
	Audio     int    `json:"audio"`
	KeyFrames int    `json:"keyFrames"`
	Gaps      int    `json:"gaps"`
	// Of the path that the media came by.
	Local    string `json:"local"`
	Protocol string `json:"protocol"`
}

func main() {
	if len(os.Args) != 4 && len(os.Args) != 7 {
		fail(fmt.Errorf("usage: player ENDPOINT PACKETS SECONDS [URL USERNAME PASSWORD]"))
	}
	wanted, _ := strconv.Atoi(os.Args[2])
	seconds, _ := strconv.Atoi(os.Args[3])

	var configuration webrtc.Configuration
	if len(os.Args) == 7 {
		configuration.ICETransportPolicy = webrtc.ICETransportPolicyRelay
		configuration.ICEServers = []webrtc.ICEServer{
			{URLs: []string{os.Args[4]}, Username: os.Args[5], Credential: os.Args[6]},
		}
	}
	peer, err := webrtc.NewPeerConnection(configuration)
	fail(err)
	var seen received
	done := make(chan struct{})
	var once sync.Once
	peer.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		isVideo := track.Kind() == webrtc.RTPCodecTypeVideo
		if isVideo {
			seen.Lock()
			seen.Codec = strings.TrimPrefix(track.Codec().MimeType, "video/")
			seen.Unlock()
			_ = peer.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: uint32(track.SSRC())}})
		}
		var next uint16
		for first := true; ; first = false {
			packet, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			seen.Lock()
			if !first && packet.SequenceNumber != next {
				seen.Gaps++
			}
			next = packet.SequenceNumber + 1
			if isVideo {
				seen.Video++
				if isKeyFrame(packet.Payload) {
					seen.KeyFrames++
				}
			} else {
				seen.Audio++
			}
			isEnough := seen.Video >= wanted && seen.Audio >= wanted && seen.KeyFrames > 0
			seen.Unlock()
			if isEnough {
				once.Do(func() { close(done) })
			}
		}
	})
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeAudio, webrtc.RTPCodecTypeVideo} {
		_, err = peer.AddTransceiverFromKind(
			kind, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly})
		fail(err)
	}
	fail(negotiate(peer, os.Args[1]))

	status := 0
	select {
	case <-done:
	case <-time.After(time.Duration(seconds) * time.Second):
		status = 1
	}
	seen.Lock()
	if pair, err := peer.SCTP().Transport().ICETransport().GetSelectedCandidatePair(); err == nil && pair != nil {
		seen.Local, seen.Protocol = pair.Local.Typ.String(), pair.Local.Protocol.String()
	}
	_ = json.NewEncoder(os.Stdout).Encode(&seen)
	_ = peer.Close()
	os.Exit(status)
}

// negotiate sends the offer and applies the answer.
func negotiate(peer *webrtc.PeerConnection, endpoint string) error {
	offer, err := peer.CreateOffer(nil)
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err := peer.SetLocalDescription(offer); err != nil {
		return err
	}
	<-gathered
	response, err := http.Post(endpoint, "application/sdp", strings.NewReader(peer.LocalDescription().SDP))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: string(body)})
}

// isKeyFrame reads the first bytes of a VP8 frame (RFC 6386 §9.1): the lowest bit is 0 in key frames.
func isKeyFrame(payload []byte) bool {
	var vp8 codecs.VP8Packet
	frame, err := vp8.Unmarshal(payload)
	return err == nil && vp8.S == 1 && vp8.PID == 0 && len(frame) > 0 && frame[0]&1 == 0
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
